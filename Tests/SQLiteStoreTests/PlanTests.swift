import Foundation
import GRDB
import GRDBSQLite
import Model
@testable import SQLiteStore
import Store
import StoreContract
import Testing

/// How the statements of the hot path reach their rows, on a store of a million deliveries.
@Suite(.timeLimit(.minutes(10)))
struct PlanTests {
    private static let golden = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Fixtures/plans-sqlite.txt")

    private static let large = ["delivery", "device", "lease", "token", "proven", "ledger", "found_gone", "cap_"]

    @Test func `hot statements reach their rows as the golden file says`() async throws {
        try await withStore { store in
            let path = HotPath(store)
            let run = try await path.begin()
            try await store.write { db in try Self.fill(run, db) }
            try await path.walk(run)
            let plans = try await store.write { db in
                var plans = StatementPlans()
                for statement in Self.prepared(db) {
                    let explanation = try db.makeStatement(sql: "EXPLAIN QUERY PLAN \(statement)")
                    // The statement does not run, so its values do not matter.
                    explanation.setUncheckedArguments(StatementArguments())
                    let rows = try Row.fetchAll(explanation)
                    plans.add(
                        statement,
                        rows.map { $0["detail"] }.filter { (detail: String) in
                            (detail.hasPrefix("SCAN ") || detail.hasPrefix("SEARCH "))
                                && Self.large.contains { detail.contains($0) }
                        })
                }
                return plans
            }
            try plans.expect(Self.golden)
        }
    }

    /// What the connection keeps prepared.
    private static func prepared(_ db: Database) -> [String] {
        var statements: [String] = []
        var next = sqlite3_next_stmt(db.sqliteConnection, nil)
        while let statement = next {
            let text = sqlite3_sql(statement).map { String(cString: $0) } ?? ""
            if text.contains(/^\s*(WITH|SELECT|INSERT|UPDATE|DELETE|REPLACE)/) { statements.append(text) }
            next = sqlite3_next_stmt(db.sqliteConnection, statement)
        }
        return statements
    }

    private static func fill(_ run: Int64, _ db: Database) throws {
        try db.execute(
            sql: """
                WITH RECURSIVE number (n) AS (SELECT 1001 UNION ALL SELECT n + 1 FROM number WHERE n < :devices)
                INSERT INTO device (id, topic_id, environment, token, locale, installation_id, user_id)
                SELECT n, (SELECT id FROM topic), 0, randomblob(32), 'en', 'install-' || n, 'user-' || (n / 2) FROM number
                """, arguments: ["devices": HotPath.devices])
        try db.execute(
            sql: """
                WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :deliveries)
                INSERT INTO delivery (
                    run_id, device_id, environment, state, attempt, doubts, generation, not_before, status, changed_at
                )
                SELECT :run, n, 0, CASE WHEN n > :devices THEN 1 ELSE 0 END, 0, 0, 1,
                    CASE WHEN n > :fresh AND n <= :devices THEN :now END, 200, :now
                FROM number
                """,
            arguments: [
                "deliveries": HotPath.deliveries, "run": run, "devices": HotPath.devices, "fresh": HotPath.fresh,
                "now": noon.milliseconds,
            ])
        try db.execute(
            sql: """
                UPDATE run SET is_frozen = 1, audience = :all, pending = :pending, accepted = :all - :pending WHERE id = :run
                """, arguments: ["all": HotPath.deliveries, "pending": HotPath.devices, "run": run])
    }
}
