import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// Senders whose clocks are wrong: the server's clock decides, whatever they believe.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct SkewedSendersTests {
    /// A sender, and the clock it has.
    private struct Sender {
        let store: PostgresDatabase
        let ahead: Duration

        func now() async throws -> Timestamp { try await serverNow(store) + ahead }
    }

    private static let budget = Configuration.SilentBudget(limit: 1, window: .seconds(300))

    @Test(arguments: [(600, 0), (0, 600), (-600, 0), (0, -600), (-600, 600), (600, -600)])
    func `no sender opens the silent budget early, however wrong its clock is`(first: Int, second: Int) async throws {
        try await withSenders([.seconds(first), .seconds(second)]) { senders in
            _ = try await senders[0].store.importDevices([try record(1)], now: noon)
            let runs = try await [silentRun(senders[0], "first"), silentRun(senders[1], "second")]
            let sent = try await lease(senders[0], runs[0])
            #expect(sent.deliveries.count == 1)
            let now = try await senders[0].now()
            _ = try await senders[0].store.settle(run: runs[0], sent.settlements(.accepted), now: now)
            let refused = try await lease(senders[1], runs[1])
            #expect(refused.deliveries.isEmpty && refused.suppressed == 0)
            let server = try await serverNow(senders[0].store)
            let free = try #require(refused.nextDue)
            #expect(abs((free - server).wholeMilliseconds - 300_000) < 30_000)
            #expect(abs((refused.storeAhead + senders[1].ahead).wholeMilliseconds) < 30_000)
            let verification = try await senders[1].store.verify(budgets: [wendercast: Self.budget])
            #expect(verification.isSound, "\(verification)")
        }
    }

    @Test func `a slot is free once its window is over by the server's clock, and not before`() async throws {
        let budget = Configuration.SilentBudget(limit: 2, window: .milliseconds(300))
        try await withSenders([.seconds(600), .seconds(-600)]) { senders in
            _ = try await senders[0].store.importDevices([try record(1)], now: noon)
            var pushes: [(reserved: Int64, settled: Int64)] = []
            for number in 0..<8 {
                let sender = senders[number % 2]
                let run = try await silentRun(sender, "run-\(number)")
                var sent = try await lease(sender, run, budget)
                while sent.deliveries.isEmpty { sent = try await lease(sender, run, budget) }
                _ = try await sender.store.settle(
                    run: run, sent.settlements(.accepted), now: try await sender.now())
                pushes.append(try await slot(sender.store, run))
            }
            for (earlier, later) in zip(pushes, pushes.dropFirst(budget.limit)) {
                #expect(later.reserved - earlier.settled >= 300)
            }
        }
    }

    @Test func `of many senders at once none takes a slot more than there are`() async throws {
        let budget = Configuration.SilentBudget(limit: 3, window: .seconds(3600))
        let devices = 40
        try await withSenders([.zero, .seconds(600), .seconds(-600), .seconds(30)]) { senders in
            _ = try await senders[0].store.importDevices(try (1...devices).map { try record($0) }, now: noon)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, sender) in senders.enumerated() {
                    group.addTask {
                        for round in 0..<3 {
                            let run = try await self.silentRun(sender, "run-\(number)-\(round)")
                            while true {
                                let lease = try await self.lease(sender, run, budget, limit: 7)
                                guard !lease.deliveries.isEmpty else { break }
                                _ = try await sender.store.settle(
                                    run: run, lease.settlements(.accepted), now: try await sender.now())
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let counts = try await senders[0].store.pool.read { db in
                try db.all("SELECT count(*) FROM silent_ledger GROUP BY device_id") { try $0.int(0) }
            }
            #expect(counts == Array(repeating: 3, count: devices))
            #expect(try await senders[0].store.verifyLedger(budget).violations == 0)
            let verification = try await senders[0].store.verify(budgets: [wendercast: budget])
            #expect(verification.isSound, "\(verification)")
        }
    }

    @Test(arguments: [600, -600])
    func `a retry waits as long as its sender says, not until the sender's time`(skew: Int) async throws {
        try await withSenders([.seconds(skew)]) { senders in
            let sender = senders[0]
            _ = try await sender.store.importDevices([try record(1)], now: noon)
            let run = try await sender.store.startRun(try definition(), now: try await sender.now())
            let sent = try await sender.store.lease(run, now: try await sender.now())
            let now = try await sender.now()
            let again = sent.settlements(.retry(notBefore: now + .seconds(100)), status: 503)
            _ = try await sender.store.settle(run: run, again, now: now)
            let waiting = try await sender.store.lease(run, after: sent.cursor, now: try await sender.now())
            let due = try #require(waiting.nextDue)
            let wait = due - (try await serverNow(sender.store))
            #expect(waiting.deliveries.isEmpty && abs(wait.wholeMilliseconds - 100_000) < 30_000)
            // By its own clock it is due in as long.
            let own = due - waiting.storeAhead - (try await sender.now())
            #expect(abs(own.wholeMilliseconds - 100_000) < 30_000)
            // What is given back is due at once.
            _ = try await sender.store.createRun(try definition("other"), occurrence: "x", now: noon, by: "test")
            #expect(try await sender.store.claim(2, by: "a", now: noon) == .claimed)
            _ = try await sender.store.freeze(2, by: "a", now: try await sender.now()) { _ in }
            let left = try await sender.store.lease(2, now: try await sender.now())
            let leases = try await sender.store.abandonedLeases(2)
            _ = try await sender.store.recover(2, heldBy: "a", leases, [], now: try await sender.now())
            let back = try await sender.store.lease(2, now: try await sender.now())
            #expect(left.deliveries.count == 1 && back.deliveries.count == 1)
        }
    }

    @Test func `a sender's clock that is set is nobody else's business`() async throws {
        try await withSenders([.zero]) { senders in
            let store = senders[0].store
            let start = ClockReading(wall: noon, uptime: .seconds(10), boot: "a")
            let first = try await store.noteClocks(start, by: "a")
            let set = ClockReading(wall: noon + .seconds(7200), uptime: .seconds(11), boot: "a")
            let second = try await store.noteClocks(set, by: "a")
            let steps = try await store.clockSteps(since: noon - .seconds(86_400))
            #expect(first == nil && second == nil && steps == [])
        }
    }

    @Test func `senders on several machines keep one pace together`() async throws {
        try await withSenders([.seconds(600), .seconds(-600)]) { senders in
            _ = try await senders[0].store.importDevices(try (1...10).map { try record($0) }, now: noon)
            var taken: [Lease] = []
            for (number, sender) in senders.enumerated() {
                let run = try await sender.store.startRun(try definition("run-\(number)"))
                let now = try await sender.now()
                var request = LeaseRequest(run: run, environment: .production, limit: 10, now: now, owner: "a")
                request.clocks = ClockReading(wall: now, uptime: .seconds(100 * (number + 1)), boot: "boot-\(number)")
                request.paces = [SharedPace(name: "all", pace: .init(pushesPerSecond: 0.01))]
                taken.append(try await sender.store.lease(request))
            }
            #expect(taken.map(\.deliveries.count) == [1, 0])
            let wait = try #require(taken[1].paceWait)
            #expect(wait > .seconds(60) && wait <= .seconds(100))
        }
    }

    @Test(arguments: [(600, -600), (-600, 600)])
    func `a webhook's message is due at once, whichever clock wrote it and whichever reads it`(
        writer: Int, reader: Int
    ) async throws {
        try await withSenders([.seconds(writer), .seconds(reader)]) { senders in
            let (writer, reader) = (senders[0], senders[1])
            try await writer.store.setWebhooks([Configuration.Webhook(url: "https://a.example", secretPath: "/s")])
            let run = try await writer.store.startRun(try definition(), now: try await writer.now())
            try await writer.store.release(
                run, by: "a", state: .paused, reason: "breaker", halt: nil, now: try await writer.now())
            var now = try await reader.now()
            let taken = try await reader.store.takeWebhookMessages(now: now, limit: 9, until: now + .seconds(60))
            #expect(taken.count == 1)
            let held = try #require(try await reader.store.nextWebhookMessage())
            #expect(abs((held - now).wholeMilliseconds - 60_000) < 30_000)
            now = try await reader.now()
            try await reader.store.postponeWebhookMessage(taken[0].id, until: now + .seconds(500), problem: "no")
            let postponed = try #require(try await reader.store.nextWebhookMessage())
            #expect(abs((postponed - now).wholeMilliseconds - 500_000) < 30_000)
        }
    }

    private func silentRun(_ sender: Sender, _ name: String) async throws -> Int64 {
        try await sender.store.startRun(try definition(name, pushType: .background), now: try await sender.now())
    }

    private func lease(
        _ sender: Sender, _ run: Int64, _ budget: Configuration.SilentBudget = budget, limit: Int = 100
    ) async throws -> Lease {
        try await sender.store.lease(
            LeaseRequest(
                run: run, environment: .production, limit: limit, now: try await sender.now(), owner: "a",
                silentBudget: budget))
    }

    private func slot(_ store: PostgresDatabase, _ run: Int64) async throws -> (reserved: Int64, settled: Int64) {
        let found = try await store.pool.read { db in
            try db.all("SELECT reserved_at, settled_at FROM silent_ledger WHERE run_id = $1", run) {
                [try $0.int64(0), try $0.int64(1)]
            }
        }
        let slot = try #require(found.first)
        return (slot[0], slot[1])
    }

    private func withSenders(_ clocks: [Duration], _ body: ([Sender]) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        var senders: [Sender] = []
        for ahead in clocks { senders.append(Sender(store: try await PostgresDatabase.open(url: url), ahead: ahead)) }
        let result: Result<Void, any Error>
        do { result = .success(try await body(senders)) } catch { result = .failure(error) }
        for sender in senders { try sender.store.close() }
        try result.get()
    }
}

private func serverNow(_ store: PostgresDatabase) async throws -> Timestamp {
    let now = try await store.pool.read { db in
        try db.first("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint") { try $0.timestamp(0) }
    }
    return try #require(now)
}
