import Foundation
import Campaigns

/// Where a long result goes: standard output, or a file that appears whole or not at all.
final class OutputFile {
    private let path: String?
    private let partPath: String
    private let handle: FileHandle
    private var isDone = false

    /// - Parameter path: nil or `-` for standard output.
    init(_ path: String?) throws {
        guard let path, path != "-" else {
            self.path = nil
            partPath = ""
            handle = .standardOutput
            return
        }
        self.path = path
        partPath = path + ".part"
        guard FileManager.default.createFile(atPath: partPath, contents: nil, attributes: [.posixPermissions: 0o600]),
            let handle = FileHandle(forWritingAtPath: partPath)
        else {
            throw Failure(.configuration, "cannot write \(path); check the folder and its permissions")
        }
        self.handle = handle
    }

    deinit {
        guard path != nil, !isDone else { return }
        try? handle.close()
        try? FileManager.default.removeItem(atPath: partPath)
    }

    func write(_ text: String) throws {
        try handle.write(contentsOf: Data(text.utf8))
    }

    /// Puts the file in its place.
    func finish() throws {
        guard let path else { return }
        try handle.synchronize()
        try handle.close()
        isDone = true
        guard rename(partPath, path) == 0 else {
            throw Failure(.configuration, "cannot write \(path): \(String(cString: strerror(errno)))")
        }
    }
}
