@preconcurrency package import Dispatch
import Foundation
import Synchronization

/// Signals that a file in the watched folders was written, moved or removed, by inotify(7). It also signals once a
/// minute, for file systems that do not report changes.
package final class FolderWatch: Sendable {
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

    /// One element for any number of changes. The stream ends when no task listens any more.
    package let changes: AsyncStream<Void>

    private let continuation: AsyncStream<Void>.Continuation
    private let queue = DispatchQueue(label: "folder-watch")
    /// `nil` if the system has no more inotify instances.
    private let file: FileHandle?
    /// The numbers of the present watches.
    private let watches = Mutex<Set<Int32>>([])

    package init(lookEvery: DispatchTimeInterval = .seconds(60)) {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.changes, self.continuation) = (changes, continuation)
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + lookEvery, repeating: lookEvery, leeway: .seconds(10))
        timer.setEventHandler { continuation.yield() }
        timer.resume()
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else {
            file = nil
            continuation.onTermination = { _ in timer.cancel() }
            return
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        self.file = file
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            // The listener looks at the files itself, so the events are only removed from the queue.
            _ = file.availableData
            continuation.yield()
        }
        source.resume()
        continuation.onTermination = { _ in
            timer.cancel()
            source.cancel()
        }
    }

    /// Watches the folders that these paths name now, and no others. Call it again after each change: a path may then
    /// name another folder.
    package func follow(_ folders: [String]) {
        // The watches are added on the queue, because a network folder may be slow.
        queue.async { [self] in
            guard let file else { return }
            let found = Set(folders.map { inotify_add_watch(file.fileDescriptor, $0, Self.events) }.filter { $0 >= 0 })
            let before = watches.withLock { watches in
                defer { watches = found }
                return watches
            }
            for number in before.subtracting(found) { inotify_rm_watch(file.fileDescriptor, number) }
            // This element stands for all changes that were made before the new watches.
            if !found.isSubset(of: before) { continuation.yield() }
        }
    }
}
