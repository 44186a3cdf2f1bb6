import Guide

/// The reference page of all commands, from their definitions.
enum CommandReference {
    static var page: GuidePage {
        // This cannot fail, because the definitions are the program's own. A test checks the page.
        let sections = (try? CommandDefinition.fanfare())?.leaves.flatMap(blocks)
        let head: [MarkdownBlock] = [
            .heading(level: 1, [.text("Commands")]),
            .paragraph(MarkdownSpan.withCode("Every command with its arguments and options, as `--help` shows them.")),
        ]
        return GuidePage(name: "reference-commands", blocks: head + (sections ?? []))
    }

    private static func blocks(_ name: String, _ command: CommandDefinition) -> [MarkdownBlock] {
        let arguments = command.ownArguments
        let rows: [[[MarkdownSpan]]] = arguments.map { argument in
            [[.code(argument.usage)], MarkdownSpan.withCode(argument.explanation)]
        }
        let texts = [command.abstract].compactMap(\.self).map { MarkdownBlock.paragraph(MarkdownSpan.withCode($0)) }
        let table = MarkdownBlock.table(head: [[.text("argument")], [.text("meaning")]], rows: rows)
        return [.heading(level: 2, [.text(name)])] + texts + discussion(command.discussion ?? "")
            + (rows.isEmpty ? [] : [table])
    }

    /// Returns the paragraphs of a discussion. A paragraph of indented lines keeps its layout, and any other one flows.
    private static func discussion(_ text: String) -> [MarkdownBlock] {
        text.split(separator: "\n\n").map { part in
            let lines = part.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            return lines.allSatisfy { $0.hasPrefix("  ") }
                ? .code(language: "", file: nil, lines.map { String($0.dropFirst(2)) })
                : .paragraph(MarkdownSpan.withCode(lines.joined(separator: " ")))
        }
    }
}
