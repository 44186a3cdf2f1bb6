import Crypto
import Foundation

/// SHA-256 of files, in hex, as `sha256sum` prints it.
package enum FileHash {
    package static func hash(of path: String) throws -> String {
        SHA256.hash(data: try Data(contentsOf: URL(fileURLWithPath: path))).hex
    }

    /// By path, relative ones made absolute.
    package static func hashes(of paths: [String]) throws -> [String: String] {
        var hashes: [String: String] = [:]
        for path in paths { hashes[absolute(path)] = try hash(of: path) }
        return hashes
    }

    package static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
}

extension Sequence<UInt8> {
    fileprivate var hex: String { map { String(0x100 + Int($0), radix: 16).dropFirst() }.joined() }
}
