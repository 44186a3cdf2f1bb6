package import Model

/// Reads fault scripts for the simulator. All problems are reported at once; there are rules only when none is an error.
package enum FaultScriptFile {
    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> ([ScriptedFault]?, [Diagnostic]) {
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return read(text: text, path: path)
    }

    package static func read(text: String, path: String) -> ([ScriptedFault]?, [Diagnostic]) {
        read(text, path, advice: "write faults: and a list of rules") { root in
            ObjectReader(root, FaultKeys.shape).flatMap { $0[FaultKeys.faults] }
        }
    }

    /// One rule in braces, as on a command line: `{rate: 1%, answer_lost: close}`. `source` names it in diagnostics.
    package static func read(rule text: String, source: String) -> (ScriptedFault?, [Diagnostic]) {
        read(text, source, advice: "write for example {rate: 1%, answer_lost: close}", ValueKind.fault.read)
    }

    private static func read<Value>(
        _ text: String, _ path: String, advice: String, _ read: (Field) -> Value?
    ) -> (Value?, [Diagnostic]) {
        let text = FileText.withoutMark(text)
        let findings = Findings(path: path, text: text)
        let value = FileText.root(of: text, into: findings, advice: advice).flatMap(read)
        return (findings.hasErrors ? nil : value, findings.diagnostics)
    }
}
