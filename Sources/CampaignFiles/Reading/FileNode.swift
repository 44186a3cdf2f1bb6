/// A value of a file with its place: what YAML means, without any of its machinery.
struct FileNode: Sendable {
    enum Content: Sendable {
        case scalar(String)
        case list([FileNode])
        case object([Member])
    }

    /// One `key: value`, in the order written; a key that stands twice is two members.
    struct Member: Sendable {
        var key: String
        var place: Place
        var value: FileNode
    }

    var content: Content
    var place: Place
    /// Written without quotes, so that `2` may be a number and `true` a boolean.
    var isPlain: Bool

    /// The text of a scalar exactly as written, `no` and `+1` included.
    var text: String? {
        if case .scalar(let text) = content { text } else { nil }
    }

    /// `key:` with nothing behind it, `~` or `null`.
    var isNothing: Bool {
        guard isPlain, let text else { return false }
        return text.isEmpty || text == "~" || text == "null"
    }

    /// What it is, in the words of a diagnostic: "expected a number, found …".
    var found: String {
        switch content {
        case .list: return "a list"
        case .object: return "an object"
        case .scalar(let text):
            if isNothing { return "nothing" }
            guard isPlain else { return "the text \(quoted(text))" }
            if text == "true" || text == "false" { return text }
            return Double(text) == nil ? quoted(text) : "the number \(text)"
        }
    }
}

/// A text of the user in a message: in quotes, on one line, and not endless.
func quoted(_ text: String) -> String {
    let line = text.replacing("\n", with: " ")
    return line.count > 60 ? "\"\(line.prefix(57))…\"" : "\"\(line)\""
}
