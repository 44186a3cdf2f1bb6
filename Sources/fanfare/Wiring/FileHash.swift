import COpenSSL
import Foundation

/// SHA-256 of files, in hex, as `sha256sum` prints it.
enum FileHash {
    static func hash(of path: String) throws -> String {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(bytes, bytes.count, &digest)
        return digest.map { String(0x100 + Int($0), radix: 16).dropFirst() }.joined()
    }

    /// By path, relative ones made absolute.
    static func hashes(of paths: [String]) throws -> [String: String] {
        var hashes: [String: String] = [:]
        for path in paths { hashes[absolute(path)] = try hash(of: path) }
        return hashes
    }

    static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
}
