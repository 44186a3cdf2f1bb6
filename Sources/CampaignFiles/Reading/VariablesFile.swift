package import Model

/// Reads the values of a run's variables from a file: an object of names and texts, in YAML or JSON.
package enum VariablesFile {
    private static let advice = "write one name: value per line"

    /// All problems at once; values only when there is none.
    package static func load(path: String) -> (values: [String: String]?, diagnostics: [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return read(text: text, path: path)
    }

    package static func read(text: String, path: String) -> (values: [String: String]?, diagnostics: [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let findings = Findings(path: path, text: text)
        guard let root = FileText.root(of: text, into: findings, advice: advice) else {
            return (nil, findings.diagnostics)
        }
        guard case .object(let members) = root.node.content else {
            root.error("expected names and their values, found \(root.node.found)", advice)
            return (nil, findings.diagnostics)
        }
        var values: [String: String] = [:]
        var seen: [String: Place] = [:]
        for member in members where root.isFirst(member, seen: &seen) {
            if let text = member.value.text, !member.value.isNothing {
                values[member.key] = text
            } else {
                findings.error(
                    "\(quoted(member.key)): expected a text, found \(member.value.found)", advice,
                    at: member.value.place)
            }
        }
        return (findings.hasErrors ? nil : values, findings.diagnostics)
    }
}
