@testable import CampaignFiles
import Foundation
import Model

/// Checks a file against a JSON Schema: as much of draft 2020-12 as our schemas use. A word it does not know is a
/// problem too, so that no schema says anything that was not checked.
struct SchemaCheck {
    private static let notes: Set<String> = ["$schema", "title", "description", "examples"]

    private(set) var problems: [String] = []

    static func problems(of text: String, against schema: Any) -> [String] {
        let collector = DiagnosticCollector(path: "f.yaml", text: text)
        guard let node = YAMLDocument.read(text, into: collector) else { return ["no YAML"] }
        var check = SchemaCheck()
        check.check(node, schema, at: "")
        return check.problems
    }

    private func passes(_ node: FileNode, _ schema: Any) -> Bool {
        var inner = SchemaCheck()
        inner.check(node, schema, at: "")
        return inner.problems.isEmpty
    }

    private mutating func check(_ node: FileNode, _ schema: Any, at path: String) {
        if let flag = schema as? Bool {
            if !flag { problems.append("\(path): nothing is allowed here") }
            return
        }
        guard let schema = schema as? [String: Any] else { return problems.append("\(path): no schema") }
        for (word, rule) in schema where !Self.notes.contains(word) {
            if !obeys(node, word, rule, schema, at: path) { problems.append("\(path): \(word) \(rule)") }
        }
    }

    private mutating func obeys(
        _ node: FileNode, _ word: String, _ rule: Any, _ schema: [String: Any], at path: String
    ) -> Bool {
        let value = node.jsonValue
        switch word {
        case "type": return ((rule as? [String]) ?? [rule as? String ?? ""]).contains { value.isA($0) }
        case "enum": return (rule as? [Any])?.contains { value == JSONScalar($0) } == true
        case "const": return value == JSONScalar(rule)
        case "pattern":
            guard case .text(let text) = value, let pattern = rule as? String else { return true }
            return matches(text, pattern, at: path)
        case "minimum", "maximum":
            guard case .number(let number) = value, let bound = rule as? Double else { return true }
            return word == "minimum" ? number >= bound : number <= bound
        case "anyOf": return (rule as? [Any])?.contains { passes(node, $0) } == true
        case "items":
            guard case .list(let nodes) = node.content else { return true }
            for (index, element) in nodes.enumerated() { check(element, rule, at: "\(path)[\(index)]") }
            return true
        case "required":
            guard case .object(let members) = node.content else { return true }
            return (rule as? [String])?.allSatisfy { name in members.contains { $0.key == name } } == true
        case "properties", "additionalProperties", "propertyNames":
            guard case .object(let members) = node.content else { return true }
            for member in members { checkMember(member, word, rule, schema, at: "\(path).\(member.key)") }
            return true
        default: return false
        }
    }

    private mutating func matches(_ text: String, _ pattern: String, at path: String) -> Bool {
        do {
            return try Regex(pattern).matchingSemantics(.unicodeScalar).firstMatch(in: text) != nil
        } catch {
            problems.append("\(path): \(pattern) is no regular expression: \(error)")
            return true
        }
    }

    private mutating func checkMember(
        _ member: FileNode.Member, _ word: String, _ rule: Any, _ schema: [String: Any], at path: String
    ) {
        let own = (schema["properties"] as? [String: Any])?[member.key]
        switch word {
        case "properties": if let own { check(member.value, own, at: path) }
        case "additionalProperties": if own == nil { check(member.value, rule, at: path) }
        default:
            check(
                FileNode(content: .scalar(member.key), location: member.location, isPlain: false), rule,
                at: "\(path) (name)")
        }
    }
}

/// A scalar as YAML 1.2 and editors read it.
private enum JSONScalar: Equatable {
    case null, list, object
    case boolean(Bool)
    case number(Double)
    case text(String)

    init(_ value: Any) {
        switch value {
        case let text as String: self = .text(text)
        case let number as Double: self = .number(number)
        default: self = .null
        }
    }

    func isA(_ type: String) -> Bool {
        switch self {
        case .null: type == "null"
        case .list: type == "array"
        case .object: type == "object"
        case .boolean: type == "boolean"
        case .text: type == "string"
        case .number(let number): type == "number" || (type == "integer" && number == number.rounded())
        }
    }
}

extension FileNode {
    fileprivate var jsonValue: JSONScalar {
        switch content {
        case .list: return .list
        case .object: return .object
        case .scalar(let text):
            if isNothing { return .null }
            guard isPlain else { return .text(text) }
            if ["true", "True", "TRUE"].contains(text) { return .boolean(true) }
            if ["false", "False", "FALSE"].contains(text) { return .boolean(false) }
            let isNumber = text.wholeMatch(of: #/[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?/#) != nil
            if isNumber { return Double(text).map { .number($0) } ?? .text(text) }
            if let match = text.wholeMatch(of: #/0x([0-9a-fA-F]+)/#) {
                return .number(Double(UInt64(match.1, radix: 16) ?? .max))
            }
            if let match = text.wholeMatch(of: #/0o([0-7]+)/#) {
                return .number(Double(UInt64(match.1, radix: 8) ?? .max))
            }
            return text.wholeMatch(of: #/[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)/#) != nil
                ? .number(.infinity) : .text(text)
        }
    }
}
