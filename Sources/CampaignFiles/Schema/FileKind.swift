import Foundation

extension JSONSchema.File {
    /// Returns the kind of a YAML file: the kind that defines most of the keys in the file. If no kind defines any of
    /// them, the path decides.
    ///
    /// - Parameter unsaved: the unsaved text of the file. `nil` to read the file.
    package static func of(path: String, unsaved: String? = nil) -> Self {
        let text = unsaved ?? (try? RegularFile.read(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let keys = keys(of: FileText.withoutMark(text))
        // If two kinds define equally many of the keys, the first kind in this list wins.
        let known = [template, campaign, configuration].map { kind in
            (kind: kind, count: kind.shape.keys.count { keys.contains($0.name) })
        }
        if let most = known.map(\.count).max(), most > 0, let first = known.first(where: { $0.count == most }) {
            return first.kind
        }
        return path.split(separator: "/").suffix(2).contains { $0.contains("template") } ? template : campaign
    }

    /// Returns the keys, read line by line, so that a file with mistakes is still recognised. The keys of a text that
    /// begins with `{` may be anywhere in a line.
    private static func keys(of text: String) -> Set<String> {
        let isFlow = text.first { !$0.isWhitespace } == "{"
        let key = isFlow ? /["']?(\w+)["']?\s*:/ : /^["']?(\w+)["']?[ \t]*:/.anchorsMatchLineEndings()
        return Set(text.matches(of: key).map { String($0.output.1) })
    }
}
