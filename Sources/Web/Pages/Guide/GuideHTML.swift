import Guide

/// Writes the blocks of a guide page as HTML. All text is escaped.
struct GuideHTML {
    /// Returns the address of a page, given its name.
    private let address: (String) -> String

    init(address: @escaping (String) -> String) {
        self.address = address
    }

    func text(_ blocks: some Sequence<MarkdownBlock>) -> String { blocks.map(text).joined(separator: "\n") }

    private func text(_ block: MarkdownBlock) -> String {
        switch block {
        case .heading(let level, let spans):
            return "<h\(level) id=\"\(spans.plain.anchor)\">\(text(spans))</h\(level)>"
        case .paragraph(let spans): return "<p>\(text(spans))</p>"
        case .code(_, let file, let lines):
            let caption = file.map { "<figcaption><code>\($0.escapedHTML)</code></figcaption>" } ?? ""
            let code = "<pre tabindex=\"0\"><code>\(lines.joined(separator: "\n").escapedHTML)</code></pre>"
            return caption.isEmpty ? code : "<figure class=\"file\">\(caption)\(code)</figure>"
        case .list(let isOrdered, let items):
            let tag = isOrdered ? "ol" : "ul"
            return "<\(tag)>\(items.map { "<li>\(text($0))</li>" }.joined())</\(tag)>"
        case .table(let head, let rows):
            let cells = head.map { "<th class=\"text\" scope=\"col\">\(text($0))</th>" }.joined()
            let body = rows.map { "<tr>\($0.map { "<td class=\"text\">\(text($0))</td>" }.joined())</tr>" }
            return "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>\(cells)</tr></thead><tbody>"
                + "\(body.joined(separator: "\n"))</tbody></table></div>"
        case .quote(let blocks): return "<blockquote>\(text(blocks))</blockquote>"
        }
    }

    func text(_ spans: [MarkdownSpan]) -> String {
        spans.map { span in
            switch span {
            case .text(let text): text.escapedHTML
            case .code(let text): "<code>\(text.escapedHTML)</code>"
            case .strong(let spans): "<strong>\(text(spans))</strong>"
            case .emphasis(let spans): "<em>\(text(spans))</em>"
            case .link(let spans, let target):
                address(ofTarget: target).map { "<a href=\"\($0.escapedHTML)\">\(text(spans))</a>" } ?? text(spans)
            }
        }.joined()
    }

    /// Returns the address of a link's target. Returns `nil` for a file of the repository that is not a page of the
    /// guide; such a link becomes plain text.
    private func address(ofTarget target: String) -> String? {
        if target.hasPrefix("http") { return target }
        let anchor = target.firstIndex(of: "#").map { target[$0...] } ?? ""
        return GuidePage.name(ofFile: target).map { address($0) + anchor }
    }
}

extension String {
    /// The anchor of a heading: its letters and digits in lower case, with hyphens between the words.
    var anchor: String {
        lowercased().split { !($0.isLetter || $0.isNumber) }.joined(separator: "-")
    }
}
