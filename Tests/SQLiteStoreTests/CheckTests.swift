import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct CheckTests {
    static let damages: [(sql: String, word: String)] = [
        ("UPDATE run SET accepted = accepted + 1", "add up"),
        ("UPDATE run SET accepted = accepted + 1, pending = pending - 1", "the rows give"),
        ("UPDATE delivery SET state = 1 WHERE device_id = 3", "the rows give"),
        ("DELETE FROM delivery WHERE device_id = 3", "the rows give"),
        ("DELETE FROM lease", "leases wait"),
        ("UPDATE lease SET open = open + 1", "leases wait"),
        ("UPDATE delivery SET not_before = 9223372036854775807 WHERE state = 0", "in flight"),
        ("UPDATE run SET definition = replace(definition, 'com.example', 'org.example')", "definition"),
    ]

    @Test(arguments: damages.indices)
    func `damage is found`(index: Int) async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 1)
            try await store.expectSumsClose(run)
            let damage = Self.damages[index]
            try await store.pool.write { try $0.execute(sql: damage.sql) }
            let check = try await store.check(run)
            #expect(check.problems.contains { $0.contains(damage.word) }, "\(damage.sql): \(check.problems)")
        }
    }

    @Test func `a run is told with the definition that its row holds now, also where that was read before`()
        async throws
    {
        try await withStore { store in
            let run = try await store.startRun(try definition())
            let before = try await store.run(run)?.definition.campaign.topic
            #expect(before?.hasPrefix("com.example") == true)
            try await store.pool.write {
                try $0.execute(sql: "UPDATE run SET definition = replace(definition, 'com.example', 'org.example')")
            }
            let after = try await store.run(run)?.definition.campaign.topic
            #expect(after == before?.replacing("com.example", with: "org.example"))
            try await store.pool.write { try $0.execute(sql: "UPDATE run SET definition = '{}'") }
            await #expect(throws: StoreError.self) { _ = try await store.run(run) }
        }
    }

    @Test func `a ledger over its budget is found`() async throws {
        try await withStore { store in
            try await store.pool.write { db in
                for attempt in 1...4 {
                    try db.execute(
                        sql: """
                            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
                            VALUES (1, 1, :attempt, :attempt, :attempt)
                            """, arguments: ["attempt": attempt])
                }
            }
            #expect(try await store.verifyLedger(Model.Configuration.SilentBudget()).violations == 1)
            #expect(try await store.verifyLedger(Model.Configuration.SilentBudget(limit: 4)).violations == 0)
        }
    }

    @Test func `a run whose sums do not close keeps its rows`() async throws {
        try await withStore { store in
            let run = try await StoreUpkeepContract.finishedRun(in: store)
            try await store.pool.write {
                try $0.execute(sql: "UPDATE run SET accepted = accepted + 1, audience = audience + 1")
            }
            let counts = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            #expect(counts.unbalanced == 1 && counts.inUse == 0 && counts.deliveries == 0)
            let problems = try await store.check(run).problems
            #expect(problems.count == 2 && problems.allSatisfy { $0.contains("the counts") })
            #expect(problems.contains { $0.hasPrefix("the timeline has") })
            let words = /the counts are audience \d+, accepted \d+; the rows give audience \d+, accepted \d+/
            #expect(problems.contains { $0.wholeMatch(of: words) != nil }, "\(problems)")
        }
    }

    @Test func `a summary that says something else than the rows is found`() async throws {
        try await withStore { store in
            let run = try await StoreUpkeepContract.finishedRun(in: store)
            try await store.summarizeOutcomes(run: run)
            try await store.pool.write { try $0.execute(sql: "UPDATE outcome_summary SET locale_index = 0") }
            #expect(try await store.check(run).problems == ["the summary of its outcomes does not match the rows"])
        }
    }
}
