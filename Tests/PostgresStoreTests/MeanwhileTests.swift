import Foundation
import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// What others do between two statements of a call.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct MeanwhileTests {
    private static let reads: [(String, @Sendable (PostgresDatabase, Int64) async throws -> Bool)] = [
        (
            "outcomes",
            { store, run in
                do {
                    _ = try await store.outcomes(run: run) { _ in }
                    return false
                } catch StoreError.outcomesPruned { return true }
            }
        ),
        ("waves", { store, run in try await store.waves(run).isEmpty }),
        ("check", { store, run in try await store.check(run).prunedAt == noon + .seconds(9) }),
        ("verify", { store, _ in try await store.verify(budgets: [:]).isSound }),
    ]

    @Test(arguments: reads.indices)
    func `what reads deliveries that are pruned at that moment finds the run pruned`(read: Int) async throws {
        try await withStore { store in
            let run = try await finishedRun(store)
            let answer = try await whileHolding(
                store, "DROP TABLE delivery_\(run)",
                "UPDATE run SET outcomes_pruned_at = \((noon + .seconds(9)).milliseconds) WHERE id = \(run)"
            ) {
                let call = Self.reads[read].1
                return Task { try await call(store, run) }
            }
            #expect(try await answer.value, "\(Self.reads[read].0)")
        }
    }

    /// Each transaction locks blocks of 64 devices in ascending order, whatever the order of the outcomes.
    @Test func `senders that prove tokens of the same devices at once lose no proof`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...400).map { try record($0) }, now: noon)
            let settled = try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<4 {
                    let run = try await store.startRun(try definition("proof-\(number)"))
                    let outcomes = try await store.lease(run).settlements(.accepted)
                    // Each sender proves three quarters of the devices, and two prove a device that a third does not.
                    let own = outcomes.filter { $0.device % 4 != number }.shuffled()
                    group.addTask {
                        for start in stride(from: 0, to: own.count, by: 50) {
                            _ = try await store.settle(
                                run: run, Array(own[start..<min(start + 50, own.count)]), now: noon)
                        }
                    }
                }
                return try await group.reduce(into: 0) { count, _ in count += 1 }
            }
            #expect(settled == 4)
            let last = try await store.startRun(try definition("last"))
            #expect(try await store.lease(last).deliveries.count(where: \.isProven) == 400)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
    }

    /// The server of before is gone. Its standby has neither the lease nor its row number.
    @Test func `an outcome of a lease that a failover lost is not recorded for a later lease`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition("failover"))
            let lost = try await store.lease(run)
            try await store.pool.write { db in
                try db.run("DELETE FROM lease")
                try db.run("ALTER TABLE lease ALTER COLUMN id RESTART WITH 1")
                try db.run("UPDATE run SET pending = pending + leased, leased = 0")
                try db.run("UPDATE delivery_\(run) SET not_before = 1")
            }
            let lease = try await store.lease(run)
            #expect(lease.deliveries.count == 4 && lost.deliveries.count == 4)
            _ = try await store.settle(run: run, lost.settlements(.accepted), now: noon)
            let counts = try #require(try await store.run(run)).counts
            #expect(counts.leased == 4 && counts.accepted == 0)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(try #require(try await store.run(run)).counts.accepted == 4)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
    }

    @Test func `a table that is missing of a run that was not pruned is a fault`() async throws {
        try await withStore { store in
            let run = try await finishedRun(store)
            try await store.pool.write { try $0.run("DROP TABLE delivery_\(run)") }
            let verification = try await store.verify(budgets: [:])
            #expect(!verification.isSound)
        }
    }

    @Test func `what another sender has in hand is not due for this one`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            for (settlement, wait) in zip(lease.settlements(.accepted), [10, 60]) {
                var again = settlement
                again.verdict = .retry(notBefore: noon + .seconds(wait))
                _ = try await store.settle(run: run, [again], now: noon)
            }
            let now = noon + .seconds(20)
            let locked = try await whileHolding(
                store, "SELECT 1 FROM delivery_\(run) WHERE device_id = 1 FOR NO KEY UPDATE", waits: false
            ) { try await store.lease(run, after: 2, now: now) }
            // It is looked at again soon: the other one may come to nothing.
            #expect(locked.deliveries.isEmpty && locked.nextDue == now + .seconds(1))
            let free = try await store.lease(run, after: 2, now: now)
            #expect(free.deliveries.map(\.device) == [1] && free.nextDue == noon + .seconds(60))
        }
    }

    @Test func `a device that is merged while its slot is waited for gets nothing`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition(pushType: .background))
            let waiting = try await whileHolding(
                store, "INSERT INTO silent_slot VALUES (1)", "DELETE FROM silent_slot WHERE device_id = 1",
                "DELETE FROM device WHERE id = 1"
            ) {
                Task {
                    try await store.lease(
                        LeaseRequest(
                            run: run, environment: .production, limit: 9, now: noon, owner: "a",
                            silentBudget: Configuration.SilentBudget()))
                }
            }
            let lease = try await waiting.value
            #expect(lease.deliveries.map(\.device) == [2] && lease.suppressions == [.tokenGone: 1])
        }
    }

    @Test func `a device that is merged while its slot of a frequency cap is waited for gets nothing, and takes none`()
        async throws
    {
        try await withStore { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let caps = [FrequencyCap(limit: 1, window: .seconds(3600))]
            let waiting = try await whileHolding(
                store, "INSERT INTO cap_ledger (kind, id, latest, pushes) VALUES (0, 0, 0, '')",
                "DELETE FROM device WHERE id = 1"
            ) { Task { try await store.capped(run, caps) } }
            let lease = try await waiting.value
            #expect(lease.deliveries.map(\.device) == [2] && lease.suppressions == [.tokenGone: 1])
            try await store.expectCapsKept(pushes: 1)
        }
    }

    /// What the server says of an error, in the classes that decide what is done about it.
    @Test(arguments: [
        ("40001", ServerFault.Kind.lostRace, true), ("40P01", .lostRace, true), ("40003", .outcomeUnknown, false),
        ("55P03", .lockTimeout, true), ("53000", .outOfMemory, true), ("53100", .diskFull, true),
        ("53300", .outOfConnections, true), ("53999", .outOfMemory, true), ("57P01", .connectionLost, true),
        ("57P02", .connectionLost, true), ("57P03", .starting, true), ("57P04", .connectionLost, true),
        ("57P05", .connectionLost, true), ("58000", .systemFault, true), ("58030", .systemFault, true),
        ("58P01", .damaged, false), ("XX001", .damaged, false), ("42P01", .undefinedObject, false),
    ])
    func `an error passes, or it does not`(sqlstate: String, kind: ServerFault.Kind, isPassing: Bool) {
        let fault = ServerFault(sqlstate: sqlstate, message: "")
        #expect(fault.kind == kind)
        #expect(PostgresError.refused(fault, server: "s").isPassing == isPassing)
    }

    private func finishedRun(_ store: PostgresDatabase) async throws -> Int64 {
        _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
        let run = try await store.startRun(try definition())
        let lease = try await store.lease(run)
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
        try await store.release(run, by: "a", state: .finished, reason: nil, halt: nil, now: noon)
        try await store.summarizeOutcomes(run: run)
        return run
    }

    /// Runs `body` while somebody's transaction has done this and is not over; until `body` waits for it, unless it is not
    /// to wait.
    private func whileHolding<Value: Sendable>(
        _ store: PostgresDatabase, _ statements: String..., waits: Bool = true, _ body: () async throws -> Value
    ) async throws -> Value {
        let (holder, asking) = (PostgresPool(store.pool.address), PostgresPool(store.pool.address))
        let (isHeld, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let holding = Task {
            try await holder.write { db in
                try db.standStill()
                for statement in statements { try db.run(statement) }
                isHeld.signal()
                isOver.wait()
            }
        }
        try await OwnThread.run { isHeld.wait() }
        let result: Result<Value, any Error>
        do {
            let value = try await body()
            let question = """
                EXISTS (SELECT 1 FROM pg_stat_activity
                    WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)
                """
            if waits { try await waitUntil(asking, question) }
            result = .success(value)
        } catch {
            result = .failure(error)
        }
        isOver.signal()
        try await holding.value
        await holder.close()
        await asking.close()
        return try result.get()
    }

    private func withStore(_ body: (PostgresDatabase) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let store = try await PostgresDatabase.open(url: cluster.url(try await cluster.makeDatabase()), time: .caller)
        let result: Result<Void, any Error>
        do { result = .success(try await body(store)) } catch { result = .failure(error) }
        try store.close()
        try result.get()
    }
}
