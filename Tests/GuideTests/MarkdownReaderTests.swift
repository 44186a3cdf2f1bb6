import Guide
import Testing

struct MarkdownReaderTests {
    private func blocks(_ text: String) -> [MarkdownBlock] { MarkdownReader.blocks(of: text) }

    @Test func `reads headings, paragraphs over several lines and comments`() {
        #expect(
            blocks("# Title\n<!-- scene: demo -->\n\nOne\ntwo.\n\n## Next\nThree.") == [
                .heading(level: 1, [.text("Title")]), .paragraph([.text("One two.")]),
                .heading(level: 2, [.text("Next")]), .paragraph([.text("Three.")]),
            ])
    }

    @Test func `reads a fence with its file, and keeps marks inside`() {
        #expect(
            blocks("```yaml file=campaigns/news.yaml\n# a *comment*\n\n  topic: x\n```\nAfter.") == [
                .code(language: "yaml", file: "campaigns/news.yaml", ["# a *comment*", "", "  topic: x"]),
                .paragraph([.text("After.")]),
            ])
    }

    @Test func `reads a fence without an end to the end of the text`() {
        #expect(blocks("```sh\nfanfare run") == [.code(language: "sh", file: nil, ["fanfare run"])])
    }

    @Test func `reads both kinds of lists, with items over several lines`() {
        #expect(
            blocks("- one\n  more\n- two\n\n1. first\n\n2. second") == [
                .list(isOrdered: false, [[.text("one more")], [.text("two")]]),
                .list(isOrdered: true, [[.text("first")], [.text("second")]]),
            ])
    }

    @Test func `reads a table, with a bar inside code and one behind a backslash`() {
        #expect(
            blocks("| a | b |\n|---|---|\n| `x|y` | 1 \\| 2 |") == [
                .table(head: [[.text("a")], [.text("b")]], rows: [[[.code("x|y")], [.text("1 | 2")]]])
            ])
    }

    @Test func `reads a quote with blocks of its own`() {
        #expect(
            blocks("> Note.\n>\n> - one") == [
                .quote([.paragraph([.text("Note.")]), .list(isOrdered: false, [[.text("one")]])])
            ])
    }

    @Test func `reads the marks inside a line`() {
        #expect(
            blocks("A **bold `b`** and *slanted* [link](Page.md#at), `code * x`, 2 * 3 * 4, \\*plain\\*.") == [
                .paragraph([
                    .text("A "), .strong([.text("bold "), .code("b")]), .text(" and "), .emphasis([.text("slanted")]),
                    .text(" "), .link([.text("link")], target: "Page.md#at"), .text(", "), .code("code * x"),
                    .text(", 2 * 3 * 4, *plain*."),
                ])
            ])
    }
}
