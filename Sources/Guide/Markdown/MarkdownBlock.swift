/// A part of a Markdown text, as far as the guide uses Markdown.
package indirect enum MarkdownBlock: Hashable, Sendable {
    case heading(level: Int, [MarkdownSpan])
    case paragraph([MarkdownSpan])
    /// Lines of code, with the word after the fence, such as `console`, and the file that the code belongs to.
    case code(language: String, file: String?, [String])
    /// The items of a list. An ordered list counts from 1.
    case list(isOrdered: Bool, [[MarkdownSpan]])
    case table(head: [[MarkdownSpan]], rows: [[[MarkdownSpan]]])
    case quote([MarkdownBlock])
}

/// A part of a line with one kind of markup.
package indirect enum MarkdownSpan: Hashable, Sendable {
    case text(String)
    case code(String)
    case strong([MarkdownSpan])
    case emphasis([MarkdownSpan])
    case link([MarkdownSpan], target: String)

    /// The text without its markup.
    package var plain: String {
        switch self {
        case .text(let text), .code(let text): text
        case .strong(let spans), .emphasis(let spans), .link(let spans, _): spans.plain
        }
    }

    /// Returns the spans of a text in which only backticks are marks, such as a help text.
    package static func withCode(_ text: String) -> [MarkdownSpan] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .map { index, part in index.isMultiple(of: 2) ? .text(String(part)) : .code(String(part)) }
            .filter { !$0.plain.isEmpty }
    }
}

extension [MarkdownSpan] {
    package var plain: String { map(\.plain).joined() }

    /// The targets of all links.
    package var links: [String] {
        flatMap { span -> [String] in
            switch span {
            case .link(_, let target): [target]
            case .strong(let spans), .emphasis(let spans): spans.links
            case .text, .code: []
            }
        }
    }
}

extension MarkdownBlock {
    /// Every run of spans in the block, in order.
    package var spans: [[MarkdownSpan]] {
        switch self {
        case .heading(_, let spans), .paragraph(let spans): [spans]
        case .code: []
        case .list(_, let items): items
        case .table(let head, let rows): head + rows.flatMap(\.self)
        case .quote(let blocks): blocks.flatMap(\.spans)
        }
    }
}
