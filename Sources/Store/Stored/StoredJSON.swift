import Foundation
package import Model

/// JSON in the store, made and read in one way: keys are sorted, so that equal values are equal texts.
package enum StoredJSON {
    /// In the text of a definition that puts another run right, and of no other.
    package static let correction = #""correction":{"kind":"#

    package static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    package static func value<Value: Decodable>(_ json: String) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(json.utf8))
    }

    /// The attributes of a device, written for every record of an import: without an encoder.
    package static func object(_ attributes: [String: String]) -> String {
        var json = [UInt8(ascii: "{")]
        for (index, pair) in attributes.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            JSONEscaping.appendQuoted(pair.key, to: &json)
            json.append(UInt8(ascii: ":"))
            JSONEscaping.appendQuoted(pair.value, to: &json)
        }
        json.append(UInt8(ascii: "}"))
        return String(decoding: json, as: UTF8.self)
    }

    /// A list for `json_each`.
    package static func array(_ texts: [String]) -> String {
        var json = [UInt8(ascii: "[")]
        for (index, text) in texts.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            JSONEscaping.appendQuoted(text, to: &json)
        }
        json.append(UInt8(ascii: "]"))
        return String(decoding: json, as: UTF8.self)
    }

    package static func array(_ numbers: [Int64]) -> String {
        "[" + numbers.map(String.init).joined(separator: ",") + "]"
    }
}

extension StageDecision {
    package init(json: String) throws { self = try StoredJSON.value(json) }

    package func json() throws -> String { try StoredJSON.text(self) }
}

/// Why stored JSON cannot be read, in words for a person: what a decoder throws names types of the program.
package struct DecodingFault: CustomStringConvertible {
    private let error: any Error

    package init(_ error: any Error) {
        self.error = error
    }

    package var description: String {
        guard let error = error as? DecodingError else { return "\(error)" }
        switch error {
        case .keyNotFound(let key, let context): return "\(Self.place(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context): return "\(Self.place(context.codingPath)) has no value"
        case .typeMismatch(_, let context): return "\(Self.place(context.codingPath)) is of another kind"
        case .dataCorrupted(let context) where context.codingPath.isEmpty: return "it is no JSON"
        case .dataCorrupted(let context):
            // The library's own sentence about a word that a type does not have.
            let isUnknownWord = context.debugDescription.hasPrefix("Cannot initialize")
            return Self.place(context.codingPath) + (isUnknownWord ? " is not known" : ": \(context.debugDescription)")
        @unknown default: return "it is not understood"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "it" : path.map { key in key.intValue.map { "\($0)" } ?? key.stringValue }.joined(separator: ".")
    }
}

extension RunState {
    /// Those that wait for a sender, or have one. Also the condition of the index `run_open`.
    package static let open: [RunState] = [.scheduled, .running]
}

extension Timestamp {
    package init?(stored milliseconds: Int64?) {
        guard let milliseconds else { return nil }
        self.init(milliseconds: milliseconds)
    }
}
