import Store
import Testing

/// How the text of an `audience_sql` is read before a database sees it.
struct AudienceSQLTextTests {
    private func fault(_ text: String) -> AudienceSQLFault? {
        do {
            _ = try AudienceSQLText(text)
            return nil
        } catch StoreError.audienceSQL(let fault) {
            return fault
        } catch {
            return .invalid("\(error)")
        }
    }

    @Test func `a text is read as words, quotes and signs`() throws {
        let text = try AudienceSQLText("SELECT \"a\"\"b\", 'it''s', :now::text--x\r/* ' */1.5e3;;")
        #expect(
            text.tokens == [
                .word("SELECT"), .blank, .name("a\"b"), .symbol(","), .blank, .literal("it's"), .symbol(","), .blank,
                .parameter(":now"), .cast, .word("text"), .blank, .blank, .blank, .symbol("1"), .symbol("."),
                .symbol("5"), .word("e3"),
            ])
    }

    @Test(arguments: [
        "SELECT 'x'\u{301}, ' --'", "SELECT \"x\"\u{301}", "SELECT x\u{301}", "SELECT 1\u{A0}",
        "SELECT '\u{301}'; SELECT 1",
        "SELECT 1 \u{1}", "SELECT 1 /* \0 */", "SELECT 'x''", "SELECT '\u{301}", "SELECT \"x",
        "SELECT 1 /* -- */ ; /* */ x",
        "; SELECT 1", "SELECT 1 --\r; x", "SET x", "\u{FEFF}SELECT 1",
    ])
    func `what a database could read otherwise is refused`(text: String) { #expect(fault(text) != nil) }

    @Test(arguments: [
        "SELECT '\u{301}'", "SELECT 'ü;--' -- ü\n", "/* ü; */ SELECT 1;", "(SELECT 1) UNION (SELECT 2)", "values (1)",
        "With x AS (SELECT 1) SELECT * FROM x ; ; -- end", "SELECT ':x', a[1:2], \"ü\"",
    ])
    func `one query is taken`(text: String) { #expect(fault(text) == nil) }
}
