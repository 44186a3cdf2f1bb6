import Foundation
package import Model

/// The JSON in the store, written and read in one way: keys are sorted, so that equal values have equal texts.
package enum StoredJSON {
    /// A text that is in the definition of every correction, and in no other definition.
    package static let correction = #""correction":{"kind":"#

    package static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    package static func value<Value: Decodable>(_ json: String) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(json.utf8))
    }

    /// Returns the JSON of a device's attributes. It uses no encoder, because it is called for every record of an
    /// import.
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

    /// Returns a list for `json_each`.
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

/// The reason why stored JSON cannot be read, in words for a person. A decoder's own error names types of the program.
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
        case .typeMismatch(_, let context): return "\(Self.place(context.codingPath)) has the wrong type"
        case .dataCorrupted(let context) where context.codingPath.isEmpty: return "it is not JSON"
        case .dataCorrupted(let context):
            // Foundation's message begins like this if a type does not have the raw value.
            let isUnknownWord = context.debugDescription.hasPrefix("Cannot initialize")
            return Self.place(context.codingPath) + (isUnknownWord ? " is not known" : ": \(context.debugDescription)")
        @unknown default: return "it cannot be decoded"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "it" : path.map { key in key.intValue.map { "\($0)" } ?? key.stringValue }.joined(separator: ".")
    }
}

extension RunState {
    /// The states of runs that wait for a sender, or have one. The index `run_open` has the same condition.
    package static let open: [RunState] = [.scheduled, .running]
}

extension Timestamp {
    package init?(stored milliseconds: Int64?) {
        guard let milliseconds else { return nil }
        self.init(milliseconds: milliseconds)
    }
}
