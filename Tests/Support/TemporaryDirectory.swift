package import Foundation

/// A directory for one test. Its last reference removes it.
package final class TemporaryDirectory: Sendable {
    package let url: URL

    package init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        do {
            try FileManager.default.removeItem(at: url)
        } catch {
            print("left behind: \(url.path): \(error)")
        }
    }

    package var path: String { url.path }

    /// Returns the path of a file in the directory, whether or not the file exists.
    package func file(_ name: String) -> String { url.appending(path: name).path }

    /// Writes a file and creates its parent folders. Returns the path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try write(Array(text.utf8), to: name)
    }

    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        let file = url.appending(path: name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
        return file.path
    }

    package func read(_ name: String) throws -> String {
        try String(contentsOf: url.appending(path: name), encoding: .utf8)
    }

    /// Creates an empty file with a new name, for the output of a process.
    package func newFile() throws -> URL {
        let file = url.appending(path: ".captured-\(UUID().uuidString)")
        try Data().write(to: file)
        return file
    }
}
