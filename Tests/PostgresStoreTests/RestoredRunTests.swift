import Model
import PostgresStore
import RelationalStore
import Store
import StoreContract
import TestSupport
import Testing

/// Runs of a restored store, moved to a server or marked there.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct RestoredRunTests {
    @Test func `a stage that waited for approval waits for it again once the gap is confirmed`() async throws {
        let cluster = try await PostgresCluster.shared
        let store = try await PostgresDatabase.open(url: cluster.url(try await cluster.makeDatabase()), time: .caller)
        defer { try? store.close() }
        let run = try await store.staged(
            300, [Stage(.share(50), toleratePercent: 20), Stage(.rest, needsApproval: true)])
        try await store.sendStage(of: run) { $0.settlements(.accepted) }
        #expect(try await store.leaseStaged(run).isPaused)
        let gap = RestoreGap(madeAt: noon, restoredAt: noon + .seconds(60))
        try await store.transaction(.durable) { db in
            try RunStateChange(db, run, now: noon).hold(RunRow.require(db, run), RestorePolicy(gap), by: "restore")
        }
        #expect(try await store.run(run)?.halt == .restored)
        #expect(try await store.approveStage(of: run, stage: 1, variant: nil, by: "eve", now: noon) == false)
        try await store.change(run, to: .running, reason: nil, now: noon, by: "bea", seen: nil)
        let waiting = try #require(try await store.run(run))
        #expect(waiting.halt == .approval && waiting.stateReason?.contains("what it sent between") == true)
        #expect(try await store.approveStage(of: run, stage: 1, variant: nil, by: "eve", now: noon))
        #expect(try await store.leaseStaged(run).deliveries.count > 100)
    }
}
