import Store
import TestSupport
import Testing

@testable import PostgresStore

/// The text of an `audience_sql` for PostgreSQL is read at a cost that its size allows.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct AnalystTextCostTests {
    @Test(arguments: [
        // The columns of one table after another, with one bracket that ends them all.
        ("WITH x(y) AS (SELECT 1)", ", a(", "b) AS (SELECT 1)"), ("SELECT ", "a.b, ", "1"), ("", "(", ""),
        ("SELECT ", "f(", ""), ("", "'' ", ""), ("", "\"a\".", "b"), ("", "x(), ", ""),
    ])
    func `a text of one kind`(head: String, unit: String, tail: String) {
        let fault = LinearCost.fault(of: .init(unit, head: head, tail: tail)) { _ = try? AnalystText($0) }
        #expect(fault == nil)
    }

    @Test func `a text of fragments`() {
        let fragments = [
            "SELECT ", "WITH ", ", ", "a(", "b", ")", " AS (", " AS ", "'", "''", "\"", "--", "/*", "*/", ";", ":now",
            ".", "|",
            "::text", "[", "]", "\u{301}", "\n",
        ]
        LinearCost.seeds { seed in
            for head in ["", "WITH x(y) AS (SELECT 1)"] {
                let pattern = LinearCost.Pattern(of: fragments, seed: seed, head: head, tail: ") AS (SELECT 1)")
                #expect(LinearCost.fault(of: pattern) { _ = try? AnalystText($0) } == nil)
            }
        }
    }
}
