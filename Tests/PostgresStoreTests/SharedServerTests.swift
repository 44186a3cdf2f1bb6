import Dispatch
import Logging
import Model
@testable import PostgresStore
@testable import Sending
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

/// What many runs of one sender ask of the server, and what none of them may wait for.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct SharedServerTests {
    private static let sender = "web1:1:16:e1"

    private func withStore(_ body: (PostgresDatabase) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        try await withStore(cluster.url(try await cluster.makeDatabase()), body)
    }

    private func withStore(_ url: String, _ body: (PostgresDatabase) async throws -> Void) async throws {
        let store = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600))
        defer { try? store.close() }
        _ = try await store.importDevices([try record(1)], now: noon)
        try await body(store)
    }

    @Test func `heartbeats that are asked for while one is answered share the next transaction`() async throws {
        try await withStore { store in
            var runs: [Int64] = []
            for number in 0..<80 {
                runs.append(try await store.startRun(try definition(), occurrence: "\(number)", owner: Self.sender))
            }
            // A row for each transaction that writes a sign of life.
            try await store.write(.quick) { db in
                try db.execute("CREATE TABLE beat_seen (at timestamptz)")
                try db.execute(
                    """
                    CREATE FUNCTION beat_seen() RETURNS trigger LANGUAGE plpgsql
                    AS $$ BEGIN INSERT INTO beat_seen VALUES (now()); RETURN NULL; END $$
                    """)
                try db.execute(
                    "CREATE TRIGGER beat_seen AFTER UPDATE ON sender FOR EACH ROW EXECUTE FUNCTION beat_seen()")
            }
            let gate = DispatchSemaphore(value: 0)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            let asked = Tally()
            // The first of them waits for this row, and the others for the first.
            async let holding: Void = store.write(.quick) { db in
                try db.standStill()
                _ = try db.first("SELECT 1 FROM sender WHERE name = $1 FOR UPDATE", Self.sender) { try $0.int(0) }
                holds.finish()
                _ = gate.wait(timeout: .now() + 240)
            }
            for await _ in held {}
            try await withThrowingTaskGroup(of: RunState.self) { group in
                for run in runs {
                    group.addTask {
                        asked.add()
                        return try await store.heartbeat(run, owner: Self.sender, now: noon)
                    }
                }
                while asked.count < runs.count { await Task.yield() }
                gate.signal()
                for try await state in group { #expect(state == .running) }
            }
            try await holding
            let transactions = try await store.read(.short) { db in
                try db.first("SELECT count(*) FROM beat_seen") { try $0.int(0) } ?? 0
            }
            #expect((1...20).contains(transactions), "\(transactions) transactions for 80 heartbeats")
        }
    }

    @Test func `a takeover that waits for locks holds back no heartbeat of its run`() async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let other = "web2:1:16:e2"
        try await withStore(url) { store in
            let run = try await store.startRun(try definition(), owner: Self.sender)
            try await withStore(url) { second in
                let hasJoined = try await second.join(run, by: Actor(other))
                #expect(hasJoined)
            }
            try await store.write(.quick) { db in
                try db.execute("UPDATE sender SET heartbeat_at = heartbeat_at - 3600000 WHERE name = $1", other)
            }
            // Each look at the clock is a little later, and no pause takes any time.
            let moment = Mutex(noon)
            let clock = WallClock(
                now: {
                    moment.withLock { moment in
                        moment = moment + .milliseconds(10)
                        return moment
                    }
                }, uptime: { moment.withLock { $0 } - noon }, sleep: { _ in await Task.yield() })
            let (waiting, waits) = AsyncStream.makeStream(of: Void.self)
            let heartbeat = Heartbeat(
                store: store, run: run, campaign: "new-podcast", lateByMax: .seconds(3600), owner: Self.sender,
                control: RunControl(counts: DeliveryCounts(), isFrozen: true), clock: clock,
                logger: Logger(label: "test"),
                takeoverHook: TakeoverHook {
                    waits.finish()
                    try await Task.sleep(for: .seconds(3600))
                })
            try await heartbeat.beat {
                for await _ in waiting {}
                var heard: Set<Timestamp> = []
                while heard.count < 5 {
                    try Task.checkCancellation()
                    if let moment = try await store.run(run)?.heartbeatAt { heard.insert(moment) }
                }
            }
        }
    }

    @Test func `a stage that goes on and a halt lock the run before the chain of events, and never each other`()
        async throws
    {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let url = cluster.url(database)
        try await withStore(url) { store in
            let run = try await Self.withStageAnswered(store)
            let gate = DispatchSemaphore(value: 0)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            // Both of them come to wait for this row.
            async let holding: Void = store.write(.quick) { db in
                try db.standStill()
                _ = try db.first("SELECT 1 FROM event_chain FOR UPDATE") { try $0.int(0) }
                holds.finish()
                _ = gate.wait(timeout: .now() + 240)
            }
            for await _ in held {}
            async let lease = store.lease(Self.staged(run))
            try await Self.untilWaiting(1, store)
            async let halted: Void = store.halt(run, by: Actor(Self.sender), .breaker, reason: "odd", now: noon)
            try await Self.untilWaiting(2, store)
            gate.signal()
            try await holding
            _ = try await lease
            try await halted
            #expect(try await store.run(run)?.halt == .breaker)
        }
        // A connection tells of its deadlocks at its end.
        try await withPool(url) { pool in
            let deadlocks = try await pool.read(.reading) { db in
                try db.first("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") {
                    try $0.int(0)
                }
            }
            #expect(deadlocks == 0)
        }
    }

    /// Runs `body` while another transaction has locked all topics, until `body` lets them go.
    private func whileTopicsAreHeld(
        _ store: PostgresDatabase, _ body: (_ letGo: DispatchSemaphore) async throws -> Void
    ) async throws {
        let gate = DispatchSemaphore(value: 0)
        let (held, holds) = AsyncStream.makeStream(of: Void.self)
        async let holding: Void = store.write(.quick) { db in
            try db.standStill()
            _ = try db.first("SELECT 1 FROM topic FOR UPDATE") { try $0.int(0) }
            holds.finish()
            _ = gate.wait(timeout: .now() + 240)
        }
        for await _ in held {}
        try await body(gate)
        try await holding
    }

    @Test func `imports that wait for each other hold back no push`() async throws {
        try await withStore { store in
            let run = try await store.startRun(try definition(), owner: Self.sender)
            try await whileTopicsAreHeld(store) { letGo in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 2..<2 + PostgresDatabase.writersMax {
                        group.addTask { _ = try await store.importDevices([try record(number)], now: noon) }
                    }
                    try await Self.untilWaiting(PostgresDatabase.bulkWritersMax, store)
                    let lease = try await store.lease(run, owner: Self.sender)
                    let counts = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                    #expect(counts.accepted == 1)
                    letGo.signal()
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `imports that wait for each other hold back no registration of another app`() async throws {
        try await withStore { store in
            try await whileTopicsAreHeld(store) { letGo in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 2..<2 + PostgresDatabase.bulkWritersMax {
                        group.addTask { _ = try await store.importDevices([try record(number)], now: noon) }
                    }
                    try await Self.untilWaiting(PostgresDatabase.bulkWritersMax, store)
                    let registered = try await store.registerDevices(
                        [try record(9, topic: "com.example.other")], reading: true, now: noon)
                    #expect(registered.map(\.effect) == [.inserted])
                    letGo.signal()
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `a signature outlives a lapse that waits for it`() async throws {
        try await withStore { store in
            let asked = try await store.requestApproval(
                ApprovalRequest(
                    definition: try definition(), occurrence: "", plan: "p1-d1", digest: "d1", reach: 100, needs: 1,
                    authors: ["os:carl"], askedBy: "os:carl", askedAt: noon), isAnew: false, by: "carl")
            let gate = DispatchSemaphore(value: 0)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            let signature = ApprovalSignature(
                identity: "os:anna", name: "anna", signedAt: noon + .seconds(90), reach: 100, isRejection: false,
                reason: nil)
            async let signing = store.sign(asked.request.id, signature, by: "anna", now: noon + .seconds(90)) {
                record in
                if record.signatures.isEmpty {
                    holds.finish()
                    _ = gate.wait(timeout: .now() + 9)
                }
                return !record.signatures.isEmpty
            }
            for await _ in held {}
            async let lapsing: Void = store.lapseApprovals(before: noon + .seconds(60))
            try await Self.untilWaiting(1, store)
            gate.signal()
            _ = try await signing
            try await lapsing
            #expect(try await store.approvals(in: nil, limit: 9).map(\.request.state) == [.open])
        }
    }

    @Test func `what waits for an import of a segment keeps neither its topic nor a connection from others`()
        async throws
    {
        try await withStore { store in
            _ = try await store.importDevices([try record(2)], now: noon)
            let gate = DispatchSemaphore(value: 0)
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            async let holding: Void = store.write(.quick) { db in
                try db.standStill()
                try db.run("LOCK TABLE segment IN ROW EXCLUSIVE MODE")
                holds.finish()
                _ = gate.wait(timeout: .now() + 240)
            }
            for await _ in held {}
            // The token of the second device at the installation of the first.
            let merging = try record(2, installation: "install-1")
            await #expect(throws: StoreError.busy(path: store.path)) {
                _ = try await store.registerDevices([merging], reading: true, now: noon)
            }
            await #expect(throws: StoreError.busy(path: store.path)) {
                _ = try await store.removeDevice(1, now: noon, by: "test")
            }
            await #expect(throws: StoreError.busy(path: store.path)) {
                try await store.defineSegment(
                    "all", source: "test", expression: .everyone, now: noon, event: nil)
            }
            // An import tries again, and lets others go first.
            async let imported = store.importDevices([merging], now: noon)
            try await Self.untilWaiting(1, store)
            let registered = try await store.registerDevices([try record(3)], reading: true, now: noon)
            #expect(registered.map(\.effect) == [.inserted])
            gate.signal()
            #expect(try await imported.merged == 1)
            try await holding
        }
    }

    private static func staged(_ run: Int64) -> LeaseRequest {
        var request = LeaseRequest(run: run, environment: .production, limit: 1000, now: noon, owner: sender)
        request.stages = 2
        return request
    }

    /// A run whose first stage is answered, and whose next lease opens the last one.
    private static func withStageAnswered(_ store: PostgresDatabase) async throws -> Int64 {
        _ = try await store.importDevices(try (1...100).map { try record($0) }, now: noon)
        let stages = [Stage(.share(20), toleratePercent: 50), Stage(.rest)]
        let run = try await store.startRun(try definition { $0.stages = stages }, owner: sender)
        let size = try await store.stages(of: run)[0].size
        var sent = 0
        while sent < size {
            let lease = try await store.lease(staged(run))
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            sent += lease.deliveries.count
        }
        return run
    }

    /// Returns when so many sessions of the database wait for a lock.
    private static func untilWaiting(_ count: Int, _ store: PostgresDatabase) async throws {
        var waiting = 0
        while waiting < count {
            try Task.checkCancellation()
            waiting = try await store.read(.short) { db in
                try db.first(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'
                    """
                ) { try $0.int(0) } ?? 0
            }
        }
    }

    /// The end of a run with a hundred million deliveries counts all of them.
    @Test func `a read of a whole run may take an hour, on the server too, and a short one may not`() async throws {
        try await withStore { store in
            let limits: @Sendable (PostgresSession) throws -> (Duration, String?) = { db in
                (db.link.call.limit, try db.first("SHOW statement_timeout") { try $0.text(0) })
            }
            let (long, longOnServer) = try await store.read(.expensive, limits)
            let (short, _) = try await store.read(.short, limits)
            #expect(long == .seconds(3600) && short <= .seconds(60), "\(long), \(short)")
            // A little longer, so that the call's own end comes first.
            #expect(longOnServer == "3605s", "\(longOnServer ?? "")")
        }
    }

    @Test func `reads of a whole run have connections of their own, and nothing short waits for these`() async throws {
        try await withStore { store in
            let run = try await store.startRun(try definition(), owner: Self.sender)
            let gate = DispatchSemaphore(value: 0)
            let held = Tally()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<PostgresDatabase.expensiveReadersMax {
                    group.addTask {
                        try await store.read(.expensive) { _ in
                            held.add()
                            _ = gate.wait(timeout: .now() + 240)
                        }
                    }
                }
                while held.count < PostgresDatabase.expensiveReadersMax { await Task.yield() }
                let counted = Tally()
                group.addTask {
                    _ = try await store.mismatchCounts(run: run)
                    counted.add()
                }
                group.addTask {
                    _ = try await store.history(ofDevice: 1)
                    counted.add()
                }
                for _ in 0..<50 {
                    #expect(try await store.run(run)?.id == run)
                    _ = try await store.waits(of: run, now: noon)
                }
                // A claim counts only where the run may be late.
                #expect(try await store.claim(run, by: Actor(Self.sender), now: noon) == .claimed)
                #expect(counted.count == 0, "a read of a whole run was not on a connection for such reads")
                for _ in 0..<PostgresDatabase.expensiveReadersMax { gate.signal() }
                try await group.waitForAll()
                #expect(counted.count == 2)
            }
        }
    }
}

/// A number that several tasks add to.
private final class Tally: Sendable {
    private let value = Mutex(0)

    var count: Int { value.withLock { $0 } }

    func add() { value.withLock { $0 += 1 } }
}
