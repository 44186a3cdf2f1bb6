import Campaigns
import Foundation
import Model

/// Checks a request's JSON body as a whole, then decodes it. The check reports all unknown, missing and wrong fields
/// together, and names the first ``ProblemList/shownMax`` of them.
enum JSONBody {
    static func value<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let value: JSONValue
        do {
            // A decoder that tries each kind of value in turn is slow, because each failed attempt throws an error.
            value = JSONValue(try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed))
        } catch {
            throw Problem(
                400, "bad_request", "Bad Request",
                data.isEmpty ? "the body is empty; send a JSON object" : "the body is not JSON")
        }
        var check = ShapeCheck()
        check.compare(value, try Shape.of(type), at: "")
        try check.found.throwIfAny()
        do {
            return try ResultJSON.value(type, from: String(decoding: data, as: UTF8.self))
        } catch {
            // The shape does not describe everything, such as the range of a number.
            throw Problem.invalid([Problem.Place(pointer: "", detail: "the body is invalid: \(error)")]
            )
        }
    }
}

/// Compares a JSON value with its shape.
private struct ShapeCheck {
    private(set) var found = ProblemList()

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
        case (.word(let allowed), .string(let word)):
            if !allowed.contains(word) { add(pointer, "\(Self.name(pointer)) must be \(shape.summary)") }
        default: add(pointer, "\(Self.name(pointer)) must be \(shape.summary)")
        }
    }

    private mutating func compare(_ values: [String: JSONValue], _ fields: [Shape.Field], at pointer: String) {
        for key in values.keys.sorted() where !fields.contains(where: { $0.name == key }) {
            found.add(Self.unknown(key, among: fields, at: pointer))
        }
        for field in fields {
            let place = "\(pointer)/\(field.name)"
            switch values[field.name] {
            case nil, .null:
                if field.isRequired {
                    add(place, "field \"\(field.name)\" is missing; it must be \(field.shape.summary)")
                }
            case let value?: compare(value, field.shape, at: place)
            }
        }
    }

    private static func unknown(_ key: String, among fields: [Shape.Field], at pointer: String) -> Problem.Place {
        let names = fields.map(\.name)
        let advice =
            Suggestion.nearest(to: key, among: names).map { "did you mean \"\($0)\"?" }
            ?? "there are \(names.joined(separator: ", "))"
        return Problem.Place(
            pointer: "\(pointer)/\(escaped(key))", detail: "unknown field \"\(key.shownShort)\"; \(advice)")
    }

    private mutating func add(_ pointer: String, _ detail: @autoclosure () -> String) {
        found.add(Problem.Place(pointer: pointer, detail: detail()))
    }

    private static func name(_ pointer: String) -> String {
        pointer.isEmpty ? "the body" : "\"\(pointer.dropFirst())\""
    }

    private static func escaped(_ key: String) -> String {
        key.shownShort.replacingSign("~", with: "~0").replacingSign("/", with: "~1")
    }
}

extension Shape {
    fileprivate var summary: String {
        switch self {
        case .string: "a string"
        case .word(let allowed): "one of \(allowed.joined(separator: ", "))"
        case .integer: "a whole number"
        case .number: "a number"
        case .boolean: "true or false"
        case .array: "a list"
        case .map, .object: "an object"
        }
    }
}

/// Any JSON value. Whole numbers have their own case.
private enum JSONValue {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(_ value: Any) {
        switch value {
        case let text as String: self = .string(text)
        case let values as [String: Any]: self = .object(values.mapValues(JSONValue.init))
        case let values as [Any]: self = .array(values.map(JSONValue.init))
        case let number as NSNumber: self.init(number)
        default: self = .null
        }
    }

    private init(_ number: NSNumber) {
        if number.isTruth {
            self = .boolean(number.boolValue)
        } else if String(cString: number.objCType) == "q" {
            self = .integer(number.int64Value)
        } else {
            self = Int64(exactly: number.doubleValue).map { .integer($0) } ?? .number(number.doubleValue)
        }
    }
}
