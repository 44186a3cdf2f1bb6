/// A JSON value whose keys keep their order, to be read by people as well.
indirect enum JSONText {
    case object([(key: String, value: JSONText)])
    case array([JSONText])
    case text(String)
    /// A number or a word of JSON, as it is written.
    case plain(String)

    /// Indented by two blanks a level; short lists on one line.
    func written(indent: String = "") -> String {
        switch self {
        case .plain(let text): return text
        case .text(let text): return Self.quoted(text)
        case .array(let values):
            return "[" + values.map { $0.written(indent: indent) }.joined(separator: ", ") + "]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let inner = indent + "  "
            let lines = members.map { "\(inner)\(Self.quoted($0.key)): \($0.value.written(indent: inner))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\n": quoted += "\\n"
            case "\t": quoted += "\\t"
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
