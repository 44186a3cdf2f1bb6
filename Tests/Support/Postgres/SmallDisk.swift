import Foundation

/// A file system of a few megabytes for a test to fill. It is a tmpfs in a separate mount namespace, and disappears
/// with the last process in it. It needs no privileges if the kernel allows unprivileged user namespaces.
package final class SmallDisk: Sendable {
    package static let isPossible: Bool = {
        do {
            let place = try TemporaryDirectory()
            let disk = try SmallDisk(at: place.file("disk"), megabytes: 1)
            try disk.fill()
            return true
        } catch {
            return false
        }
    }()

    private static let isRoot = geteuid() == 0

    private let path: String
    /// The process that keeps the namespace while this object exists.
    private let holder: pid_t
    private let writeEnd: Int32

    /// - Parameter path: the folder to create. It is the disk inside the namespace, and empty outside it.
    package init(at path: String, megabytes: Int) throws {
        self.path = path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        writeEnd = ends[1]
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let script = "mount -t tmpfs -o size=\(megabytes)m,mode=0777 none '\(path)' && echo ready && exec cat"
        process.arguments =
            ["unshare"] + (Self.isRoot ? [] : ["--map-current-user", "--keep-caps"])
            + ["--mount", "--propagation", "private", "sh", "-c", script]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        holder = process.processIdentifier
        var word = [UInt8](repeating: 0, count: 6)
        guard read(output.fileHandleForReading.fileDescriptor, &word, word.count) > 0 else {
            throw POSIXError(.EPERM)
        }
    }

    deinit { close(writeEnd) }

    /// The command that runs the words after it inside the namespace.
    var words: [String] {
        ["nsenter", "-t", "\(holder)", "--mount"] + (Self.isRoot ? [] : ["--user", "--preserve-credentials"])
    }

    /// Returns the path of a file on the disk for processes outside the namespace.
    func outside(_ name: String) -> String { "/proc/\(holder)/root\(path)/\(name)" }

    /// Fills the disk completely.
    package func fill() throws {
        let file = open(outside("filler"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(file) }
        let page = [UInt8](repeating: 7, count: 4_096)
        while write(file, page, page.count) > 0 {}
        guard errno == ENOSPC else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    package func makeRoom() { unlink(outside("filler")) }
}
