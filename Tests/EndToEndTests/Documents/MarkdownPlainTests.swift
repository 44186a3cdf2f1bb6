import Guide
import Testing

@testable import fanfare

struct MarkdownPlainTests {
    private func text(_ markdown: String, width: Int = 40) -> String {
        MarkdownPlain(width: width).text(MarkdownReader.blocks(of: markdown))
    }

    @Test func `wraps lines, indents code, and names the command behind a link`() {
        #expect(
            text(
                "# A title\n\nSome words that need more than one line [here](FirstBroadcast.md).\n\n```console\n$ ls\n```"
            ) == """
                A TITLE

                Some words that need more than one line
                here (`fanfare guide first-broadcast`).

                    $ ls

                """)
    }

    @Test func `sets a table within the width`() {
        let lines = text("| key | meaning |\n|---|---|\n| `a` | a long text that does not fit beside it at all |")
            .split(separator: "\n")
        #expect(lines.count > 3)
        #expect(lines.allSatisfy { $0.count <= 40 })
        #expect(lines[0].hasPrefix("key  meaning"))
    }
}
