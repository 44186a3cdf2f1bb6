import Campaigns
import Foundation
import Model

/// A request's JSON body, looked at whole: every field that is unknown, missing or of a wrong kind is named at once.
enum JSONBody {
    static func value<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let value: JSONValue
        do {
            value = try JSONDecoder().decode(JSONValue.self, from: data)
        } catch {
            throw Problem(
                400, "bad_request", "Bad Request",
                data.isEmpty ? "the body is empty; it is to be a JSON object" : "the body is not JSON")
        }
        var check = ShapeCheck()
        check.compare(value, try Shape.of(type), at: "")
        guard check.found.isEmpty else { throw Problem.invalid(check.found) }
        do {
            return try ResultJSON.value(type, from: String(decoding: data, as: UTF8.self))
        } catch {
            // What the shape cannot say, such as a number that does not fit.
            throw Problem.invalid([Problem.Place(pointer: "", detail: "the body does not say what it should: \(error)")]
            )
        }
    }
}

/// Holds a JSON value against its shape.
private struct ShapeCheck {
    private(set) var found: [Problem.Place] = []

    mutating func compare(_ value: JSONValue, _ shape: Shape, at pointer: String) {
        switch (shape, value) {
        case (.string, .string), (.boolean, .boolean), (.integer, .integer), (.number, .integer), (.number, .number):
            break
        case (.array(let element), .array(let values)):
            for (index, value) in values.enumerated() { compare(value, element, at: "\(pointer)/\(index)") }
        case (.map(let element), .object(let values)):
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                compare(value, element, at: "\(pointer)/\(Self.escaped(key))")
            }
        case (.object(let fields), .object(let values)): compare(values, fields, at: pointer)
        case (.word(let words), .string(let word)):
            if !words.contains(word) { add(pointer, "\(Self.name(pointer)) is to be \(shape.words)") }
        default: add(pointer, "\(Self.name(pointer)) is to be \(shape.words)")
        }
    }

    private mutating func compare(_ values: [String: JSONValue], _ fields: [Shape.Field], at pointer: String) {
        for key in values.keys.sorted() where !fields.contains(where: { $0.name == key }) {
            let suggestion = Suggestion.nearest(to: key, among: fields.map(\.name))
            add(
                "\(pointer)/\(Self.escaped(key))",
                "unknown field \"\(key)\"; "
                    + (suggestion.map { "did you mean \"\($0)\"?" }
                        ?? "there are \(fields.map(\.name).joined(separator: ", "))"))
        }
        for field in fields {
            let place = "\(pointer)/\(field.name)"
            switch values[field.name] {
            case nil, .null:
                if field.isRequired {
                    add(place, "field \"\(field.name)\" is missing; it is to be \(field.shape.words)")
                }
            case let value?: compare(value, field.shape, at: place)
            }
        }
    }

    private mutating func add(_ pointer: String, _ detail: String) {
        found.append(Problem.Place(pointer: pointer, detail: detail))
    }

    private static func name(_ pointer: String) -> String {
        pointer.isEmpty ? "the body" : "\"\(pointer.dropFirst())\""
    }

    private static func escaped(_ key: String) -> String {
        key.replacing("~", with: "~0").replacing("/", with: "~1")
    }
}

extension Shape {
    fileprivate var words: String {
        switch self {
        case .string: "a string"
        case .word(let words): "one of \(words.joined(separator: ", "))"
        case .integer: "a whole number"
        case .number: "a number"
        case .boolean: "true or false"
        case .array: "a list"
        case .map, .object: "an object"
        }
    }
}

/// Any JSON value, with whole numbers told from others.
private enum JSONValue: Decodable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}
