import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

/// Deletions that fail after their first transactions. What they deleted is on record.
@Suite(.timeLimit(.minutes(10)))
struct InterruptedPruneTests {
    private func fail(_ store: SQLiteFileStore, on change: String, when condition: String) async throws {
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER failing BEFORE \(change) WHEN \(condition)
                    BEGIN SELECT RAISE(ABORT, 'disk'); END
                    """)
        }
    }

    private func details(_ kind: EventKind, _ store: SQLiteFileStore) async throws -> [String] {
        try await store.events(EventFilter(kind: kind.rawValue), before: nil, limit: 9).events.map(\.detail)
    }

    @Test func `a prune of devices`() async throws {
        try await withStore { store in
            let records = try (1...5_000).map { number in
                try record(number) { $0.lastSeenAt = noon - .seconds(86_400) }
            }
            _ = try await store.importDevices(records, now: noon - .seconds(86_400))
            try await fail(store, on: "DELETE ON device", when: "old.id = 4500")
            await #expect(throws: (any Error).self) {
                _ = try await store.pruneDevices(notSeenSince: noon, dryRun: false, now: noon)
            }
            #expect(try await store.deviceCounts().map(\.count) == [1_000])
            #expect(try await details(.devicesPruned, store) == ["gone 0, not seen 4000; interrupted"])
        }
    }

    @Test func `a prune of outcomes`() async throws {
        try await withStore { store in
            let first = try await StoreUpkeepContract.finishedRun(in: store)
            let second = try await store.startRun(try definition("second"))
            let lease = try await store.lease(second)
            _ = try await store.settle(run: second, lease.settlements(.accepted), now: noon)
            try await store.release(second, by: "a", state: .cancelled, reason: nil, now: noon)
            let outcomes = try await store.report(first).counts.audience
            try await fail(store, on: "DELETE ON delivery", when: "old.run_id = \(second)")
            await #expect(throws: (any Error).self) {
                _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            }
            #expect(try await details(.outcomesPruned, store) == ["\(outcomes) of 1 run; interrupted"])
        }
    }

    @Test func `a prune of pushes that no cap counts any more, in slices and after the event`() async throws {
        try await withStore { store in
            _ = try await StoreUpkeepContract.finishedRun(in: store)
            try await store.pool.write { db in
                try db.execute(
                    sql: """
                        WITH RECURSIVE number (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < 7000)
                        INSERT INTO cap_ledger (kind, id, latest, pushes) SELECT id % 2, id, 1, x'' FROM number
                        """)
            }
            try await fail(store, on: "DELETE ON cap_ledger", when: "old.kind = 1 AND old.id > 6000")
            await #expect(throws: (any Error).self) {
                _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            }
            #expect(try await details(.outcomesPruned, store).count == 1)
            // The fourth transaction of 2,000 rows failed.
            let left = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM cap_ledger") }
            #expect(left == 1_000)
            try await store.pool.write { try $0.execute(sql: "DROP TRIGGER failing") }
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            let none = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM cap_ledger") }
            #expect(none == 0)
        }
    }
}
