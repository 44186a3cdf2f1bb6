import Foundation

extension JSONSchema.File {
    /// What a YAML file is: the kind that knows most of its keys, whatever their order. Of a text that no kind knows
    /// anything of its path decides.
    ///
    /// - Parameter unsaved: what is to stand in the file; nil: what stands there.
    package static func of(path: String, unsaved: String? = nil) -> Self {
        let text = unsaved ?? (try? RegularFile.read(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let keys = keys(of: FileText.withoutMark(text))
        // Where two know as many, the word that both have is a template's own.
        let known = [template, campaign, configuration].map { kind in
            (kind: kind, count: kind.shape.keys.count { keys.contains($0.name) })
        }
        if let most = known.map(\.count).max(), most > 0, let first = known.first(where: { $0.count == most }) {
            return first.kind
        }
        return path.split(separator: "/").suffix(2).contains { $0.contains("template") } ? template : campaign
    }

    /// Read line by line, so that a file with mistakes is still what it was meant to be; `{` begins one whose keys may
    /// stand anywhere.
    private static func keys(of text: String) -> Set<String> {
        let isFlow = text.first { !$0.isWhitespace } == "{"
        let key = isFlow ? /["']?(\w+)["']?\s*:/ : /^["']?(\w+)["']?[ \t]*:/.anchorsMatchLineEndings()
        return Set(text.matches(of: key).map { String($0.output.1) })
    }
}
