import Mustache

/// Converts the values that a template uses, so that their fields can be found by name. Mustache itself searches a
/// mirror of all fields whenever a template names one. For a table of a hundred rows, this costs more than the rest of
/// the page.
enum TemplateModel {
    /// - Parameter value: a value with stored properties, a list, an optional, a text, a number or a Boolean.
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

    /// The fields of one value. A field is converted only when a template names it, because a list of runs shows only a
    /// few fields of each run.
    private struct Fields: MustacheParent {
        private let fields: [String: Any]

        init(_ fields: [String: Any]) { self.fields = fields }

        func child(named name: String) -> Any? { fields[name].flatMap(tree) }
    }
}
