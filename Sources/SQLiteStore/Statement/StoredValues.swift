import Foundation
import Model
import Store

/// Constants of our types as SQL text, so that a state, a status or a reason stands in a statement as its type has it.
/// Data never comes this way: it is bound.
enum SQLConstants {
    /// `'scheduled', 'running'`.
    static func list(_ words: [String]) -> String {
        words.map { "'\($0)'" }.joined(separator: ", ")
    }

    static func list(_ states: [RunState]) -> String { list(states.map(\.rawValue)) }

    /// `1, 3`.
    static func list(_ states: [DeliveryState]) -> String {
        states.map { "\($0.rawValue)" }.joined(separator: ", ")
    }

    /// The word of a stored number: `CASE environment WHEN 0 THEN 'production' ELSE 'sandbox' END`. The last one stands
    /// for every other number, as it does when they are read.
    static func word(of column: String, _ words: [(code: Int64, word: String)]) -> String {
        let cases = words.dropLast().map { "WHEN \($0.code) THEN '\($0.word)'" }.joined(separator: " ")
        return "CASE \(column) \(cases) ELSE '\(words.last?.word ?? "")' END"
    }

    /// A stored moment as `Timestamp.iso8601` writes it.
    static func moment(_ column: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')"
    }

    static func environment(_ column: String) -> String {
        word(of: column, PushEnvironment.allCases.map { ($0.code, $0.rawValue) })
    }
}

extension RunState {
    /// Those that wait for a sender, or have one. Also the condition of the index `run_open`.
    static let open: [RunState] = [.scheduled, .running]
}

extension Timestamp {
    init?(stored milliseconds: Int64?) {
        guard let milliseconds else { return nil }
        self.init(milliseconds: milliseconds)
    }
}

/// JSON in the store, made and read in one way: keys are sorted, so that equal values are equal texts.
enum StoredJSON {
    static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func value<Value: Decodable>(_ json: String) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(json.utf8))
    }

    /// The attributes of a device, written for every record of an import: without an encoder.
    static func object(_ attributes: [String: String]) -> String {
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
    static func array(_ texts: [String]) -> String {
        var json = [UInt8(ascii: "[")]
        for (index, text) in texts.enumerated() {
            if index > 0 { json.append(UInt8(ascii: ",")) }
            JSONEscaping.appendQuoted(text, to: &json)
        }
        json.append(UInt8(ascii: "]"))
        return String(decoding: json, as: UTF8.self)
    }

    static func array(_ numbers: [Int64]) -> String {
        "[" + numbers.map(String.init).joined(separator: ",") + "]"
    }
}

/// A run's definition as it is kept: JSON with sorted keys, and a hash that shows later changes. FNV-1a is enough for
/// that: it guards against damage and hand edits, not against an attacker who can write the store anyway.
struct RunDefinitionText {
    let json: String
    let hash: Int64

    init(_ definition: RunDefinition) throws {
        self.init(json: try StoredJSON.text(definition))
    }

    init(json: String) {
        self.json = json
        self.hash = Int64(bitPattern: FNV1a.hash(json))
    }

    func definition() throws -> RunDefinition {
        try StoredJSON.value(json)
    }
}

/// Why stored JSON cannot be read, in words for a person: what a decoder throws names types of the program.
struct DecodingFault: CustomStringConvertible {
    private let error: any Error

    init(_ error: any Error) {
        self.error = error
    }

    var description: String {
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
