/// A page of the guide.
package struct GuidePage: Hashable, Sendable {
    /// The name in addresses and for `fanfare guide`, such as `first-broadcast`.
    package let name: String
    package let title: String
    package let blocks: [MarkdownBlock]

    /// - Parameters:
    ///   - name: the name, or the name of the page's file, such as `FirstBroadcast.md`.
    ///   - text: Markdown that begins with a heading of level 1.
    package init(name: String, text: String) {
        self.init(name: Self.name(ofFile: name) ?? name, blocks: MarkdownReader.blocks(of: text))
    }

    package init(name: String, blocks: [MarkdownBlock]) {
        self.name = name
        self.blocks = blocks
        if case .heading(1, let spans)? = blocks.first { title = spans.plain } else { title = name }
    }

    /// The text of the first paragraph, which states the result that the page leads to.
    package var summary: String {
        for case .paragraph(let spans) in blocks { return spans.plain }
        return ""
    }

    /// Returns the name of the page in a file of the guide, or `nil` if the target is no such file.
    /// `FirstBroadcast.md#next` gives `first-broadcast`.
    package static func name(ofFile target: String) -> String? {
        guard let file = target.split(separator: "#", omittingEmptySubsequences: false).first,
            file.hasSuffix(".md"), !file.contains("/")
        else { return nil }
        let letters = Array(file.dropLast(3))
        var name = ""
        for (index, letter) in letters.enumerated() {
            let beginsWord =
                index > 0 && letter.isUppercase
                && (!letters[index - 1].isUppercase || letters[(index + 1)...].first?.isLowercase == true)
            name += (beginsWord ? "-" : "") + letter.lowercased()
        }
        return name
    }
}

/// A part of a page under one heading.
struct GuideSection {
    /// `nil` for the part before the first heading of level 2.
    var heading: String?
    /// The plain text, with a line for each paragraph, list item, table row and line of code.
    var lines: [String] = []

    static func sections(of page: GuidePage) -> [GuideSection] {
        var sections = [GuideSection(heading: nil)]
        for block in page.blocks {
            switch block {
            case .heading(1, _): continue
            case .heading(2, let spans): sections.append(GuideSection(heading: spans.plain))
            case .code(_, _, let lines): sections[sections.count - 1].lines += lines
            case .table(let head, let rows):
                sections[sections.count - 1].lines += ([head] + rows).map { $0.map(\.plain).joined(separator: ": ") }
            default: sections[sections.count - 1].lines += block.spans.map(\.plain)
            }
        }
        return sections
    }
}
