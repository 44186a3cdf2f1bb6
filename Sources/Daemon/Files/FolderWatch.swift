@preconcurrency import Dispatch
import Foundation

/// Tells that something was written, moved or removed in some folders, by inotify(7); and once a minute in any case, for
/// file systems that do not tell.
package struct FolderWatch {
    private static let lookEvery: DispatchTimeInterval = .seconds(60)

    /// One element for any number of changes; ends when nobody listens any more.
    package let changes: AsyncStream<Void>

    package init(folders: [String]) {
        let file = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        let events = UInt32(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)
        if file >= 0 { for folder in Set(folders) { inotify_add_watch(file, folder, events) } }
        changes = AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let queue = DispatchQueue(label: "folder-watch")
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.schedule(deadline: .now() + Self.lookEvery, repeating: Self.lookEvery, leeway: .seconds(10))
            timer.setEventHandler { continuation.yield() }
            timer.resume()
            guard file >= 0 else {
                continuation.onTermination = { _ in timer.cancel() }
                return
            }
            let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
            let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
            source.setEventHandler {
                // What happened is found by looking; the events only need to be taken off.
                _ = handle.availableData
                continuation.yield()
            }
            source.resume()
            continuation.onTermination = { _ in
                timer.cancel()
                source.cancel()
            }
        }
    }
}
