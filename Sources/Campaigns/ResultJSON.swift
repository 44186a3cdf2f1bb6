import CampaignFiles
import Foundation

/// The JSON form of every result for programs, in `--json` and elsewhere: keys in snake_case and alphabetical order,
/// slashes unescaped.
package enum ResultJSON {
    package static func text(_ value: some Encodable) throws -> String {
        try text(value, [.prettyPrinted])
    }

    /// Returns the same JSON on one line.
    package static func line(_ value: some Encodable) throws -> String { try text(value, []) }

    private static func text(_ value: some Encodable, _ more: JSONEncoder.OutputFormatting) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, more]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// Decodes a value from the same JSON.
    package static func value<Value: Decodable>(_ type: Value.Type, from text: String) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(text.utf8))
    }
}
