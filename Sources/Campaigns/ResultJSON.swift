import CampaignFiles
import Foundation

/// How every result is written for programs, by `--json` and wherever else: keys in snake_case and in alphabetical order,
/// slashes as they are.
package enum ResultJSON {
    package static func text(_ value: some Encodable) throws -> String {
        try text(value, [.prettyPrinted])
    }

    /// The same on one line.
    package static func line(_ value: some Encodable) throws -> String { try text(value, []) }

    private static func text(_ value: some Encodable, _ more: JSONEncoder.OutputFormatting) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, more]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// The same backwards.
    package static func value<Value: Decodable>(_ type: Value.Type, from text: String) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(text.utf8))
    }
}
