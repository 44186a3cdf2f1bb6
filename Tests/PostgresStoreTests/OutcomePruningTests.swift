import Dispatch
import Model
import Store
import StoreContract
import TestSupport
import Testing

@testable import PostgresStore

@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct OutcomePruningTests {
    @Test func `a run whose outcomes are being read keeps them until the next prune, and is no unbalanced run`()
        async throws
    {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let store = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600))
        defer { try? store.close() }
        let run = try await StoreUpkeepContract.finishedRun(in: store)
        let gate = DispatchSemaphore(value: 0)
        let (held, holds) = AsyncStream.makeStream(of: Void.self)
        async let reading: Void = store.read { db in
            try db.standStill()
            _ = try db.first("SELECT count(*) FROM delivery_\(run)") { try $0.int(0) }
            holds.finish()
            _ = gate.wait(timeout: .now() + 240)
        }
        for await _ in held {}
        func prune() async throws -> OutcomePruneCounts {
            try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
        }
        let meanwhile = try await prune()
        gate.signal()
        try await reading
        #expect(meanwhile.inUse == 1 && meanwhile.unbalanced == 0 && meanwhile.runs == 0)
        #expect(try await prune().runs == 1)
        #expect(try await prune() == OutcomePruneCounts())
    }
}
