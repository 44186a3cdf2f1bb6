import Guide

/// Writes blocks as plain lines for a terminal.
struct MarkdownPlain {
    private let width: Int
    /// Whether headings and strong text are bold.
    private let isStyled: Bool

    init(width: Int, isStyled: Bool = false) {
        self.width = max(40, width)
        self.isStyled = isStyled
    }

    func text(_ blocks: some Sequence<MarkdownBlock>) -> String {
        blocks.map { lines($0).joined(separator: "\n") }.joined(separator: "\n\n") + "\n"
    }

    private func lines(_ block: MarkdownBlock) -> [String] {
        switch block {
        case .heading(let level, let spans):
            let title = level == 1 ? spans.plain.uppercased() : spans.plain
            return [isStyled ? "\u{1B}[1m\(title)\u{1B}[0m" : title]
        case .paragraph(let spans): return wrapped(text(of: spans), width)
        case .code(_, let file?, let lines):
            // The content of a file is not indented, so that a reader can copy it unchanged.
            let rule = String(repeating: "-", count: 8)
            return ["\(file):", rule] + lines + [rule]
        case .code(_, nil, let lines): return lines.map { "    " + $0 }
        case .list(let isOrdered, let items):
            return items.enumerated().flatMap { number, spans in
                let mark = isOrdered ? "\(number + 1). " : "- "
                return hanging(wrapped(text(of: spans), width - mark.count), under: mark)
            }
        case .table(let head, let rows): return table([head] + rows)
        case .quote(let blocks): return blocks.flatMap(lines).map { "  " + $0 }
        }
    }

    /// Returns the text of spans. The address of a web link, or the command for a page, follows the link's text.
    private func text(of spans: [MarkdownSpan]) -> String {
        spans.map { span in
            switch span {
            case .text(let text): text
            case .code(let text): isStyled ? text : "`\(text)`"
            case .strong(let spans): isStyled ? "\u{1B}[1m\(spans.plain)\u{1B}[0m" : spans.plain
            case .emphasis(let spans): text(of: spans)
            case .link(let spans, let target):
                target.hasPrefix("http")
                    ? "\(text(of: spans)) (\(target))"
                    : GuidePage.name(ofFile: target).map { "\(text(of: spans)) (`fanfare guide \($0)`)" }
                        ?? text(of: spans)
            }
        }.joined()
    }

    private func hanging(_ lines: [String], under mark: String) -> [String] {
        lines.enumerated().map { ($0 == 0 ? mark : String(repeating: " ", count: mark.count)) + $1 }
    }

    private func wrapped(_ text: String, _ width: Int) -> [String] {
        Page.wrapped(text, width: width, length: \.shownCount)
    }

    /// Puts the columns side by side. If they are too wide, the widest columns are narrowed, and their texts wrap.
    private func table(_ rows: [[[MarkdownSpan]]]) -> [String] {
        let cells = rows.map { $0.map { text(of: $0) } }
        let columns = cells.map(\.count).max() ?? 0
        let widths = fitted((0..<columns).map { column in cells.map { $0.at(column).shownCount }.max() ?? 0 })
        let lines = cells.map { row in
            let parts = (0..<columns).map { wrapped(row.at($0), widths[$0]) }
            return (0..<(parts.map(\.count).max() ?? 0)).map { line in
                zip(parts, widths).map { part, width in
                    let text = line < part.count ? part[line] : ""
                    return text + String(repeating: " ", count: max(0, width - text.shownCount))
                }.joined(separator: "  ").withoutTrailingBlanks
            }
        }
        guard let head = lines.first else { return [] }
        let rule = widths.map { String(repeating: "-", count: $0) }.joined(separator: "  ")
        return head + [rule] + lines.dropFirst().flatMap(\.self)
    }

    private func fitted(_ wanted: [Int]) -> [Int] {
        var widths = wanted
        let room = max(12 * wanted.count, width - 2 * max(0, wanted.count - 1))
        while widths.reduce(0, +) > room, let widest = widths.indices.max(by: { widths[$0] < widths[$1] }) {
            widths[widest] -= 1
        }
        return widths
    }
}

extension [String] {
    fileprivate func at(_ index: Int) -> String { index < count ? self[index] : "" }
}

extension String {
    /// The number of characters without the marks for bold.
    fileprivate var shownCount: Int {
        contains("\u{1B}") ? replacing("\u{1B}[1m", with: "").replacing("\u{1B}[0m", with: "").count : count
    }

    fileprivate var withoutTrailingBlanks: String { String(reversed().drop { $0 == " " }.reversed()) }
}
