/// Reads the Markdown of the guide: headings, paragraphs, fences, lists of one level, tables and quotes. It reads only
/// texts of this program, never those of a user.
package struct MarkdownReader {
    private var lines: ArraySlice<Substring>

    private init(_ lines: [Substring]) {
        self.lines = lines[...]
    }

    package static func blocks(of text: String) -> [MarkdownBlock] {
        var reader = MarkdownReader(text.split(separator: "\n", omittingEmptySubsequences: false))
        return reader.blocks()
    }

    private mutating func blocks() -> [MarkdownBlock] {
        var blocks: [MarkdownBlock] = []
        while let line = lines.first {
            if line.isBlank || line.hasPrefix("<!--") {
                lines.removeFirst()
            } else if line.hasPrefix("```") {
                blocks.append(fence())
            } else if let level = line.headingLevel {
                lines.removeFirst()
                blocks.append(.heading(level: level, MarkdownSpans.read(line.dropFirst(level + 1))))
            } else if line.hasPrefix("|") {
                blocks.append(table())
            } else if line.hasPrefix(">") {
                blocks.append(quote())
            } else if let marker = line.listMarker {
                blocks.append(list(isOrdered: marker.isOrdered))
            } else {
                blocks.append(.paragraph(paragraph()))
            }
        }
        return blocks
    }

    private mutating func fence() -> MarkdownBlock {
        let info = lines.removeFirst().drop { $0 == "`" }.split(separator: " ")
        let file = info.dropFirst().first { $0.hasPrefix("file=") }?.dropFirst("file=".count)
        let end = lines.firstIndex { $0.hasPrefix("```") } ?? lines.endIndex
        let code = lines[..<end].map(String.init)
        lines = lines[end...].dropFirst()
        return .code(language: info.first.map(String.init) ?? "", file: file.map(String.init), code)
    }

    private mutating func paragraph() -> [MarkdownSpan] {
        var text: [Substring] = []
        repeat {
            text.append(lines.removeFirst())
        } while lines.first.map { !$0.isBlank && !$0.beginsBlock } == true
        return MarkdownSpans.read(text.joined(separator: " "))
    }

    /// Reads a list. An item consists of the line with its marker and the indented lines after it.
    private mutating func list(isOrdered: Bool) -> MarkdownBlock {
        var items: [[MarkdownSpan]] = []
        while let line = lines.first, let marker = line.listMarker, marker.isOrdered == isOrdered {
            lines.removeFirst()
            var text = [line.dropFirst(marker.length)]
            while let next = lines.first, !next.isBlank, next.hasPrefix(" ") {
                text.append(next.drop { $0 == " " })
                lines.removeFirst()
            }
            items.append(MarkdownSpans.read(text.joined(separator: " ")))
            let following = lines.drop { $0.isBlank }
            if following.first?.listMarker?.isOrdered == isOrdered { lines = following }
        }
        return .list(isOrdered: isOrdered, items)
    }

    private mutating func table() -> MarkdownBlock {
        var rows: [[[MarkdownSpan]]] = []
        while let line = lines.first, line.hasPrefix("|") {
            lines.removeFirst()
            if rows.count == 1, line.allSatisfy({ "|-: ".contains($0) }) { continue }
            rows.append(MarkdownSpans.cells(of: line).map(MarkdownSpans.read))
        }
        return .table(head: rows.first ?? [], rows: Array(rows.dropFirst()))
    }

    private mutating func quote() -> MarkdownBlock {
        var text: [Substring] = []
        while let line = lines.first, line.hasPrefix(">") {
            text.append(line.dropFirst(line.hasPrefix("> ") ? 2 : 1))
            lines.removeFirst()
        }
        var reader = MarkdownReader(text)
        return .quote(reader.blocks())
    }
}

extension Substring {
    fileprivate var isBlank: Bool { allSatisfy { $0 == " " } }

    fileprivate var headingLevel: Int? {
        let level = prefix { $0 == "#" }.count
        return (1...4).contains(level) && dropFirst(level).first == " " ? level : nil
    }

    /// The marker of a list item and its length, including the blank after it.
    fileprivate var listMarker: (isOrdered: Bool, length: Int)? {
        if hasPrefix("- ") { return (false, 2) }
        let digits = prefix { $0.isASCII && $0.isNumber }.count
        return digits > 0 && dropFirst(digits).hasPrefix(". ") ? (true, digits + 2) : nil
    }

    fileprivate var beginsBlock: Bool {
        hasPrefix("```") || hasPrefix("|") || hasPrefix(">") || headingLevel != nil || listMarker != nil
    }
}
