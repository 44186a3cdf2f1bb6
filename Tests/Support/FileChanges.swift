import Foundation

/// Reports writes to the files of a folder by inotify(7). Tests use it to wait for another process.
package final class FileChanges: Sendable {
    package struct Failed: Error {
        package let code: Int32
    }

    /// The error of a wait that reached its deadline.
    package struct Overdue: Error {}

    private let events: Int32
    /// Both ends of the pipe that ``raise()`` writes to.
    private let raised: (read: Int32, write: Int32)
    private let names: Set<String>

    /// Starts to watch. A write before the first wait is not lost.
    ///
    /// - Parameter names: the names of the watched files, which need not exist yet.
    package init(folder: String, names: Set<String>) throws {
        self.names = names
        events = inotify_init1(Int32(IN_CLOEXEC))
        var ends: [Int32] = [-1, -1]
        guard events >= 0, inotify_add_watch(events, folder, UInt32(IN_MODIFY | IN_CREATE | IN_MOVED_TO)) >= 0,
            pipe(&ends) == 0
        else { throw Failed(code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        raised = (ends[0], ends[1])
    }

    deinit {
        for file in [events, raised.read, raised.write] { close(file) }
    }

    /// Ends the current wait, or the next one.
    package func raise() {
        _ = [UInt8(1)].withUnsafeBytes { write(raised.write, $0.baseAddress, 1) }
    }

    /// Returns if one of the files was written since the last call, or if ``raise()`` was called. Throws ``Overdue`` at
    /// the deadline.
    package func wait(until deadline: ContinuousClock.Instant) throws {
        while ContinuousClock.now < deadline {
            var files = [events, raised.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&files, 2, 1_000) > 0 else { continue }
            var buffer = [UInt8](repeating: 0, count: 16 * 1024)
            if files[1].revents != 0 {
                _ = read(raised.read, &buffer, buffer.count)
                return
            }
            let count = read(events, &buffer, buffer.count)
            if count > 0, Self.names(in: buffer[..<count]).contains(where: names.contains) { return }
        }
        throw Overdue()
    }

    /// Returns the names in inotify events. An event has 16 bytes. The last four are the length of the name that
    /// follows, which is padded with zeros.
    private static func names(in buffer: ArraySlice<UInt8>) -> [String] {
        var names: [String] = []
        var rest = buffer
        while rest.count >= 16 {
            let length = rest.dropFirst(12).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            names.append(String(decoding: rest.dropFirst(16).prefix(length).prefix { $0 != 0 }, as: UTF8.self))
            rest = rest.dropFirst(16 + length)
        }
        return names
    }
}
