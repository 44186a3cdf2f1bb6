import Mustache

/// What a template sees, with the fields of each value by their names: Mustache looks a field up by walking a mirror of
/// all of them, once for every place that names it, which for a table of a hundred lines costs more than all the rest of
/// its page.
enum TemplateModel {
    /// - Parameter value: of values that have stored properties, lists, optionals, texts, numbers and truths.
    static func tree(_ value: Any) -> Any? {
        switch value {
        case let text as String: return text
        case let truth as Bool: return truth
        case let number as Int: return number
        default: break
        }
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .optional: return mirror.children.first.flatMap { tree($0.value) }
        case .collection: return mirror.children.compactMap { tree($0.value) }
        case .struct where !mirror.children.isEmpty, .tuple where !mirror.children.isEmpty:
            return fields(mirror)
        default: return value
        }
    }

    private static func fields(_ mirror: Mirror) -> Fields {
        var fields: [String: Any] = [:]
        for child in mirror.children {
            if let label = child.label { fields[label] = child.value }
        }
        return Fields(fields)
    }

    /// Of one value. What is in a field is seen when a template names it: a list of runs shows little of each.
    private struct Fields: MustacheParent {
        private let fields: [String: Any]

        init(_ fields: [String: Any]) { self.fields = fields }

        func child(named name: String) -> Any? { fields[name].flatMap(tree) }
    }
}
