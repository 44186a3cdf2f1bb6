/// Reads the marks inside a line: code, strong, emphasis and links.
enum MarkdownSpans {
    static func read(_ text: some StringProtocol) -> [MarkdownSpan] {
        var spans: [MarkdownSpan] = []
        var plain = ""
        var rest = Substring(text)
        while let character = rest.first {
            if character == "\\", let next = rest.dropFirst().first, next.isPunctuation || next.isSymbol {
                plain.append(next)
                rest = rest.dropFirst(2)
            } else if let (span, length) = marked(rest) {
                if !plain.isEmpty { spans.append(.text(plain)) }
                plain = ""
                spans.append(span)
                rest = rest.dropFirst(length)
            } else {
                plain.append(character)
                rest = rest.dropFirst()
            }
        }
        return plain.isEmpty ? spans : spans + [.text(plain)]
    }

    /// Returns the marked span at the beginning of the text and its length, or `nil` if the text begins without a mark.
    private static func marked(_ text: Substring) -> (MarkdownSpan, Int)? {
        if let (inner, length) = inside(text, "`", "`") { return (.code(String(inner)), length) }
        if let (inner, length) = inside(text, "**", "**") { return (.strong(read(inner)), length) }
        if let (inner, length) = inside(text, "*", "*"), inner.first != " " { return (.emphasis(read(inner)), length) }
        guard let (label, length) = inside(text, "[", "]"),
            let (target, more) = inside(text.dropFirst(length), "(", ")")
        else { return nil }
        return (.link(read(label), target: String(target)), length + more)
    }

    private static func inside(_ text: Substring, _ open: String, _ close: String) -> (Substring, Int)? {
        guard text.hasPrefix(open), let end = text.dropFirst(open.count).firstRange(of: close) else { return nil }
        let inner = text[text.index(text.startIndex, offsetBy: open.count)..<end.lowerBound]
        return inner.isEmpty ? nil : (inner, open.count + inner.count + close.count)
    }

    /// Splits a line of a table. A bar inside code or after a backslash does not separate cells.
    static func cells(of line: Substring) -> [String] {
        var cells: [String] = []
        var cell = ""
        var isCode = false
        var isEscaped = false
        for character in line.dropFirst() {
            if character == "|", !isCode, !isEscaped {
                cells.append(trimmed(cell))
                cell = ""
                continue
            }
            if character == "`" { isCode.toggle() }
            if isEscaped, character == "|" { cell.removeLast() }
            isEscaped = character == "\\"
            cell.append(character)
        }
        return trimmed(cell).isEmpty ? cells : cells + [trimmed(cell)]
    }

    private static func trimmed(_ text: String) -> String {
        String(text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
