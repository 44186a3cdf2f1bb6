import Foundation
import Sending

/// SHA-256 of files, in hex, as `sha256sum` prints it.
package enum FileHash {
    package static func hash(of path: String) throws -> String {
        ContentHash.sha256([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
    }

    /// By path, relative ones made absolute.
    package static func hashes(of paths: [String]) throws -> [String: String] {
        var hashes: [String: String] = [:]
        for path in paths { hashes[absolute(path)] = try hash(of: path) }
        return hashes
    }

    package static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
}
