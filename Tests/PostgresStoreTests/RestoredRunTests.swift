import Foundation
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

    @Test func `a silent and a capped push wait until their window holds nothing of the lost time`() async throws {
        let cluster = try await PostgresCluster.shared
        let store = try await PostgresDatabase.open(url: cluster.url(try await cluster.makeDatabase()), time: .caller)
        defer { try? store.close() }
        _ = try await store.importDevices([try record(1)], now: noon)
        let gap = RestoreGap(madeAt: noon - .seconds(60), restoredAt: noon)
        try await store.transaction(.durable) { db in try StoredFact.set(RestoreGap.key, gap, db) }
        #expect(try await store.restoreGap() == gap)
        let capped = try await store.startRun(try definition("capped"))
        let silent = try await store.startRun(try definition("silent", pushType: .background))
        let free = noon + .seconds(3600)
        for run in [capped, silent] {
            func sent(at now: Timestamp) async throws -> Lease {
                var request = LeaseRequest(run: run, environment: .production, limit: 10, now: now, owner: "a")
                if run == silent {
                    request.silentBudget = Configuration.SilentBudget(limit: 2, window: .seconds(3600))
                } else {
                    request.caps = CapRequest(
                        rule: CapRule(
                            topic: wendercast, pushClass: FrequencyCap.usualClass,
                            caps: [FrequencyCap(limit: 1, window: .seconds(3600))]),
                        latest: Expiry(plannedAt: noon, after: .seconds(86_400)))
                }
                return try await store.lease(request)
            }
            let early = try await sent(at: noon + .seconds(1))
            #expect(early.deliveries.isEmpty && early.nextDue == free, "\(early)")
            #expect(try await sent(at: free - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await sent(at: free).deliveries.count == 1)
        }
    }

    @Test func `no store is marked as restored while a sender is alive`() async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600))
        defer { try? store.close() }
        try await store.beat("web1:1:16:e1", SenderFacts())
        let refused = await #expect(throws: StoreError.self) {
            _ = try await store.markRestored(since: noon, by: "amy", now: noon)
        }
        guard case .inUse(_, let reason) = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(reason.contains("web1:1:16:e1 may be sending"))
        #expect(try await store.restoreGap() == nil)
        // As in a dump of an hour ago.
        _ = try await store.transaction(.quick) { db in
            try db.execute("UPDATE sender SET heartbeat_at = heartbeat_at - 3600000")
        }
        let before = Timestamp(Date())
        let restored = try await store.markRestored(since: noon, by: "amy", now: noon)
        // The server's clock counts.
        #expect(try #require(restored).restoredAt >= before - .seconds(60))
    }
}
