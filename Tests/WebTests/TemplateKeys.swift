import Foundation

/// The names in a template that its model does not have: a misspelt field shows nothing, and nobody is told.
struct TemplateKeys {
    private let templates: [String: String]
    private(set) var faults: [String] = []

    /// - Parameter model: an example in which no list is empty and no optional nil, or what stands in them is not looked at.
    init(_ model: Any, _ name: String, in templates: [String: String]) {
        self.templates = templates
        check(name, [model])
    }

    private mutating func check(_ name: String, _ stack: [Any]) {
        guard let text = templates[name] else { return faults.append("no template \(name)") }
        var stacks = [stack]
        for tag in text.matches(of: /\{\{\{?\s*([#^\/>&!]?)\s*([^}\s]+)\s*\}?\}\}/) {
            let (sign, key) = (String(tag.1), String(tag.2))
            let current = stacks[stacks.count - 1]
            switch sign {
            case "!": continue
            case ">": check(key, current)
            case "/": stacks.removeLast()
            case "#", "^": stacks.append(current + (inner(key, current, name).map { [$0] } ?? []))
            default: _ = value(key, current, name)
            }
        }
        if stacks.count != 1 { faults.append("\(name): a section has no end") }
    }

    /// What a section's inside looks at first: an element of a list, or the value.
    private mutating func inner(_ key: String, _ stack: [Any], _ name: String) -> Any? {
        guard let value = value(key, stack, name) else { return nil }
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .collection else { return value }
        if mirror.children.isEmpty { faults.append("\(name): the example has nothing in \(key)") }
        return mirror.children.map(\.value).first(where: Self.isFull) ?? mirror.children.first?.value
    }

    /// Nothing in it is nil or an empty list.
    private static func isFull(_ value: Any) -> Bool {
        Mirror(reflecting: value).children.allSatisfy { child in
            let mirror = Mirror(reflecting: child.value)
            return !mirror.children.isEmpty || ![.collection, .optional].contains(mirror.displayStyle)
        }
    }

    private mutating func value(_ key: String, _ stack: [Any], _ name: String) -> Any? {
        if key == "." { return stack.last }
        for object in stack.reversed() {
            guard let found = Mirror(reflecting: object).children.first(where: { $0.label == key }) else { continue }
            let mirror = Mirror(reflecting: found.value)
            guard mirror.displayStyle == .optional else { return found.value }
            if mirror.children.isEmpty { faults.append("\(name): the example has no \(key)") }
            return mirror.children.first?.value
        }
        faults.append("\(name): no \(key)")
        return nil
    }
}
