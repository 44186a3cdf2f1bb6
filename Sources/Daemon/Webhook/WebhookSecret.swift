import Campaigns
import Foundation

/// A webhook's shared secret, in a file of its own.
package enum WebhookSecret {
    private static let bytesMin = 16

    /// The file's text without surrounding blanks; behind `whsec_` it is base64, as Standard Webhooks has it.
    package static func read(_ path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Failure(
                .configuration, "cannot read the webhook's secret \(path); check the path and its permissions")
        }
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let prefix = "whsec_"
        let secret =
            text.hasPrefix(prefix)
            ? Data(base64Encoded: String(text.dropFirst(prefix.count))).map { Array($0) } ?? [] : Array(text.utf8)
        guard secret.count >= bytesMin else {
            throw Failure(
                .configuration,
                "\(path) holds no secret of at least \(bytesMin) bytes; make one with `openssl rand -hex 32 > \(path)`")
        }
        return secret
    }
}
