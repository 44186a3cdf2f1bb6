import GRDB
import Model
import Testing

@testable import SQLiteStore
import Store

@Suite(.timeLimit(.minutes(10)))
struct OutcomePruningTests {
    @Test func `the report of a finished run is the same from its summary as from its rows`() async throws {
        try await withStore { store in
            let run = try await Self.finishedRun(in: store)
            let counted = try await store.report(run)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.report(run) == counted)
            #expect(counted.rejected.count == 1 && counted.byLocale.count == 2 && counted.byEnvironment.count == 2)
            try await store.expectSumsClose(run)
        }
    }

    @Test func `a run that still has something to do gets no summary`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            try await store.summarizeOutcomes(run: run)
            let lease = try await store.lease(run)
            try await store.summarizeOutcomes(run: run)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            // A summary of before would say pending.
            #expect(try await store.report(run).counts.accepted == 4)
        }
    }

    @Test func `pruned outcomes leave the report and closed sums`() async throws {
        try await withStore { store in
            let run = try await Self.finishedRun(in: store)
            let before = try await store.report(run)
            let counts = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(60), dryRun: false, now: noon + .seconds(120))
            #expect(counts.runs == 1 && counts.deliveries == before.counts.audience && counts.kept == 0)
            #expect(try await store.report(run) == before)
            try await store.expectSumsClose(run)
            #expect(try await store.verify(budgets: [:]).checks.allSatisfy { $0.faults.isEmpty })
            #expect(try await store.history(ofDevice: 1, limit: 10).isEmpty)
            await #expect(throws: StoreError.outcomesPruned(run: run, at: noon + .seconds(120))) {
                _ = try await store.outcomes(run: run) { _ in }
            }
            let again = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            #expect(again == OutcomePruneCounts())
        }
    }

    @Test func `a dry run, a younger run and one that goes on lose nothing`() async throws {
        try await withStore { store in
            let run = try await Self.finishedRun(in: store)
            _ = try await store.startRun(try definition("other"))
            let dry = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: true, now: noon)
            #expect(dry.runs == 1)
            let young = try await store.pruneOutcomes(finishedBefore: noon, dryRun: false, now: noon)
            #expect(young.runs == 0)
            #expect(try await store.outcomes(run: run) { _ in } == dry.deliveries)
        }
    }

    @Test func `a cancelled run is pruned as well`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 1)
            try await store.release(run, by: "a", state: .cancelled, reason: nil, now: noon)
            let before = try await store.report(run)
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(1), dryRun: false, now: noon)
            #expect(try await store.report(run) == before)
            #expect(before.counts.suppressed == 3 && before.counts.unknown == 1)
        }
    }

    @Test func `a run whose sums do not close keeps its rows`() async throws {
        try await withStore { store in
            let run = try await Self.finishedRun(in: store)
            try await store.pool.write {
                try $0.execute(sql: "UPDATE run SET accepted = accepted + 1, audience = audience + 1")
            }
            let counts = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            #expect(counts.kept == 1 && counts.deliveries == 0)
            #expect(try await store.check(run).problems.count == 1)
        }
    }

    @Test func `a summary that says something else than the rows is found`() async throws {
        try await withStore { store in
            let run = try await Self.finishedRun(in: store)
            try await store.summarizeOutcomes(run: run)
            try await store.pool.write { try $0.execute(sql: "UPDATE outcome_summary SET locale_index = 0") }
            #expect(try await store.check(run).problems == ["the summary of its outcomes is not what the rows say"])
        }
    }

    @Test func `shrinking gives the space of pruned outcomes back`() async throws {
        try await withStore { store in
            _ = try await Self.finishedRun(in: store, devices: 20_000)
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            let pruned = try await store.size()
            #expect(pruned.freeBytes > 0)
            try await store.shrink()
            let small = try await store.size()
            #expect(small.freeBytes == 0 && small.bytes <= pruned.bytes - pruned.freeBytes)
        }
    }

    /// Two locales, both environments, some rejected.
    private static func finishedRun(in store: SQLiteFileStore, devices: Int = 30) async throws -> Int64 {
        let records = try (1...devices).map { try record($0, environment: $0 > 2 ? .production : .sandbox) }
        _ = try await store.importDevices(records, now: noon)
        let run = try await store.startRun(try definition())
        for environment in PushEnvironment.allCases {
            let lease = try await store.lease(run, limit: devices, environment: environment)
            var settlements = lease.settlements(.accepted)
            for place in settlements.indices { settlements[place].localeIndex = place % 2 }
            for place in settlements.indices.prefix(1) {
                (settlements[place].verdict, settlements[place].status) = (.rejected, 400)
                settlements[place].reason = "BadDeviceToken"
            }
            _ = try await store.settle(run: run, settlements, now: noon)
        }
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        return run
    }
}
