import Foundation
import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// What senders of several machines see of each other: a store each, on one database.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct SenderTests {
    static let names = ["web1:1:16:e1", "web2:1:16:e2", "web3:1:16:e3"]

    @Test func `a sender that was silent for too long is gone for good, whatever it says after that`() async throws {
        try await withSenders { stores in
            let (first, second) = (stores[0], stores[1])
            let run = try await start(first, devices: 30)
            let lease = try await first.lease(run, limit: 10, owner: Self.names[0])
            #expect(try await second.claim(run, by: Actor(Self.names[1]), now: noon).isHeld)
            #expect(try await second.openRuns(for: Self.names[1], inHand: []).isEmpty)

            try await silence(Self.names[0], first)
            #expect(try await second.openRuns(for: Self.names[1], inHand: []).map(\.id) == [run])
            #expect(try await second.claim(run, by: Actor(Self.names[1]), now: noon) == .claimed)
            #expect(try await second.takeOverLeases(of: run, besides: Self.names[1]) == Set(Self.names.prefix(2)))
            let lost = StoreError.senderLost(Self.names[0])
            await #expect(throws: lost) { _ = try await first.heartbeat(run, owner: Self.names[0], now: noon) }
            await #expect(throws: lost) { try await first.beat(Self.names[0], SenderFacts()) }
            await #expect(throws: lost) { _ = try await first.claim(run, by: Actor(Self.names[0]), now: noon) }
            await #expect(throws: StoreError.lostClaim(run: run, holder: Self.names[1])) {
                try await first.lease(run, owner: Self.names[0])
            }
            // What it had in flight is the other one's to recover, and what it says of that comes too late.
            let left = try await second.abandonedLeases(run)
            #expect(left.map(\.owner) == [Self.names[0]])
            let counts = try await second.recover(run, heldBy: Self.names[1], left, [], now: noon)
            #expect(counts.pending == 30 && counts.leased == 0)
            let late = try await first.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(late.accepted == 0 && late.pending == 30)
            try await second.expectSumsClose(run)
        }
    }

    @Test func `several senders send of one run, each delivery once, and the lead ends it`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 3_000)
            for (store, name) in zip(stores.dropFirst(), Self.names.dropFirst()) {
                #expect(try await store.join(run, by: Actor(name)))
                #expect(try await store.runs(of: name).map(\.id) == [run])
            }
            let sent = try await withThrowingTaskGroup(of: [Int64].self) { group in
                for (store, name) in zip(stores, Self.names) {
                    group.addTask {
                        var devices: [Int64] = []
                        while true {
                            let lease = try await store.lease(run, limit: 100, owner: name)
                            if lease.deliveries.isEmpty { return devices }
                            devices += lease.deliveries.map(\.device)
                            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(sent.count == 3_000 && Set(sent).count == 3_000)
            let participants = try await stores[0].participants(of: run, apartFrom: Self.names[0])
            #expect(participants.others == 2 && participants.gone == 0 && !participants.hasOtherLead)
            #expect(try await stores[1].participants(of: run, apartFrom: Self.names[1]).hasOtherLead)
            try await stores[0].release(run, by: Actor(Self.names[0]), state: .finished, reason: nil, now: noon)
            for (store, name) in zip(stores.dropFirst(), Self.names.dropFirst()) {
                #expect(try await store.heartbeat(run, owner: name, now: noon) == .finished)
                try await store.leave(run, by: Actor(name), now: noon)
            }
            #expect(try await stores[2].run(run)?.counts.accepted == 3_000)
            try await stores[2].expectSumsClose(run)
        }
    }

    @Test func `the lead recovers what a sender left that took part and is gone, and nothing of those that live`()
        async throws
    {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            for index in 1...2 {
                #expect(try await stores[index].join(run, by: Actor(Self.names[index])))
                _ = try await stores[index].lease(run, limit: 10, owner: Self.names[index])
            }
            try await silence(Self.names[1], stores[0])
            #expect(try await stores[0].participants(of: run, apartFrom: Self.names[0]).gone == 1)
            #expect(try await stores[0].takeOverLeases(of: run, besides: nil) == [Self.names[1]])
            let left = try await stores[0].abandonedLeases(run)
            #expect(Set(left.map(\.owner)) == [Self.names[1], Self.names[2]])
            let counts = try await stores[0].recover(
                run, heldBy: Self.names[0], left.filter { $0.owner == Self.names[1] }, [], now: noon)
            #expect(counts.pending == 20 && counts.leased == 10)
            let lost = StoreError.lostClaim(run: run, holder: Self.names[0])
            await #expect(throws: lost) { try await stores[1].lease(run, owner: Self.names[1]) }
            #expect(try await stores[2].lease(run, limit: 10, owner: Self.names[2]).deliveries.count == 10)
            try await stores[0].expectSumsClose(run)
        }
    }

    @Test func `a run without a lead takes nobody in, and those who are there see that it has none`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            try await stores[0].release(run, by: Actor(Self.names[0]), state: .running, reason: nil, now: noon)
            #expect(try await !stores[1].participants(of: run, apartFrom: Self.names[1]).hasOtherLead)
            #expect(try await !stores[2].join(run, by: Actor(Self.names[2])))
            // Whoever takes it leaves those who send of it their right to.
            #expect(try await stores[2].claim(run, by: Actor(Self.names[2]), now: noon) == .claimed)
            #expect(try await stores[1].lease(run, limit: 10, owner: Self.names[1]).deliveries.count == 10)
            #expect(try await stores[1].participants(of: run, apartFrom: Self.names[1]).hasOtherLead)
        }
    }

    @Test(arguments: [true, false])
    func `a cancelled run is ended by the last to leave it, with the answers of all`(leadIsLast: Bool) async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            let leases = [
                try await stores[0].lease(run, limit: 5, owner: Self.names[0]),
                try await stores[1].lease(run, limit: 10, owner: Self.names[1]),
            ]
            try await stores[2].change(run, to: .cancelled, reason: "wrong", now: noon, by: "ray")
            let order = leadIsLast ? [1, 0] : [0, 1]
            for index in order {
                #expect(try await stores[index].heartbeat(run, owner: Self.names[index], now: noon) == .cancelled)
                #expect(try await stores[2].run(run)?.finishedAt == nil)
                _ = try await stores[index].settle(run: run, leases[index].settlements(.accepted), now: noon)
                if index == 0 {
                    try await stores[0].release(
                        run, by: Actor(Self.names[0]), state: .running, reason: nil, now: noon)
                } else {
                    try await stores[1].leave(run, by: Actor(Self.names[1]), now: noon)
                }
            }
            let ended = try #require(try await stores[2].run(run))
            #expect(ended.finishedAt != nil && ended.counts.accepted == 15 && ended.counts.suppressed == 15)
            try await stores[2].expectSumsClose(run)
        }
    }

    @Test func `one daemon coordinates, and another does once it is silent`() async throws {
        try await withSenders { stores in
            #expect(try await stores[0].becomeDaemon(owner: Self.names[0], now: noon) == nil)
            #expect(try await stores[1].becomeDaemon(owner: Self.names[1], now: noon)?.owner == Self.names[0])
            try await stores[1].beat(Self.names[1], SenderFacts())
            #expect(try await stores[2].senders().map(\.isCoordinator) == [true, false])
            try await silence(Self.names[0], stores[0])
            #expect(try await stores[1].becomeDaemon(owner: Self.names[1], now: noon) == nil)
            await #expect(throws: StoreError.senderLost(Self.names[0])) {
                _ = try await stores[0].daemonHeartbeat(owner: Self.names[0], DaemonStatus(), now: noon)
            }
            let senders = try await stores[2].senders()
            #expect(senders.map(\.state) == [.alive, .gone] && senders.map(\.isCoordinator) == [true, false])
            #expect(senders.map(\.name) == [Self.names[1], Self.names[0]] && senders[0].term > senders[1].term)
        }
    }

    @Test func `an outage of the server makes nobody silent`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            for index in 1...2 { #expect(try await stores[index].join(run, by: Actor(Self.names[index]))) }
            for name in Self.names { try await shift(name, byMilliseconds: -3_600_000, stores[0]) }
            // The first to come back.
            try await stores[1].beat(Self.names[1], SenderFacts())
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil).isEmpty)
            #expect(try await stores[1].abandonedRuns().isEmpty)
            try await stores[0].beat(Self.names[0], SenderFacts())
            try await endQuietTime(stores[0])
            #expect(try await stores[0].takeOverLeases(of: run, besides: nil) == [Self.names[2]])
        }
    }

    /// What an operator, a timer or a sender that starts does first after an outage of the server, when no heartbeat
    /// was written yet. The two senders of the run live, and come back later.
    struct FirstCall: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let call: @Sendable (PostgresDatabase, Int64) async throws -> Void
    }

    private static let firstCalls = [
        FirstCall(testDescription: "pause") { store, run in
            try await store.change(run, to: .paused, reason: nil, now: noon, by: "ray")
        },
        FirstCall(testDescription: "resume") { store, run in
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
        },
        FirstCall(testDescription: "cancel") { store, run in
            try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "ray")
        },
        FirstCall(testDescription: "recovery") { store, run in
            let gone = try await store.takeOverLeases(of: run, besides: nil)
            #expect(gone.isEmpty)
        },
        FirstCall(testDescription: "a daemon that starts") { store, _ in
            let other = try await store.becomeDaemon(owner: names[2], now: noon)
            #expect(other?.owner == names[0])
        },
        FirstCall(testDescription: "a claim") { store, run in
            let claim = try await store.claim(run, by: Actor(names[2]), now: noon)
            #expect(claim.isHeld)
        },
    ]

    @Test(arguments: firstCalls)
    func `the first call after an outage fences no living sender`(_ first: FirstCall) async throws {
        try await withSenders { stores in
            #expect(try await stores[0].becomeDaemon(owner: Self.names[0], now: noon) == nil)
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            let lease = try await stores[1].lease(run, limit: 10, owner: Self.names[1])
            for name in Self.names { try await shift(name, byMilliseconds: -3_600_000, stores[0]) }
            try await first.call(stores[2], run)
            for index in 0...1 {
                _ = try await stores[index].heartbeat(run, owner: Self.names[index], now: noon)
            }
            let counts = try await stores[1].settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(counts.accepted == 10)
            try await stores[0].expectSumsClose(run)
        }
    }

    @Test func `one silence begins one quiet time, however often it is looked at`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            try await silence(Self.names[0], stores[0])
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil).isEmpty)
            try await stores[1].pool.write { db in try db.execute("UPDATE sender_quiet SET until = 0") }
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil) == [Self.names[0]])
        }
    }

    /// Its machine is recovering it with its journal, run by run. Another machine has none.
    @Test func `a fenced sender is dead for other machines only when it is silent`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            _ = try await stores[0].lease(run, limit: 10, owner: Self.names[0])
            try await stores[0].pool.write { db in try db.execute("UPDATE sender SET lost_at = heartbeat_at") }
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil).isEmpty)
            #expect(try await stores[1].abandonedRuns().isEmpty)
            #expect(try await stores[1].claim(run, by: Actor(Self.names[1]), now: noon).isHeld)
            try await silence(Self.names[0], stores[0])
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil) == [Self.names[0]])
        }
    }

    /// The row of a sender that coordinates is kept, however long it is silent; a name without a row is dead.
    @Test func `the coordinator's role is given again after its machine was gone for days`() async throws {
        try await withSenders { stores in
            #expect(try await stores[0].becomeDaemon(owner: Self.names[0], now: noon) == nil)
            try await shift(Self.names[0], byMilliseconds: -3 * 86_400_000, stores[0])
            #expect(try await stores[1].becomeDaemon(owner: Self.names[1], now: noon)?.owner == Self.names[0])
            try await stores[1].beat(Self.names[1], SenderFacts())
            #expect(try await stores[2].senders().map(\.name).sorted() == Self.names.prefix(2).sorted())
            try await endQuietTime(stores[0])
            #expect(try await stores[1].becomeDaemon(owner: Self.names[1], now: noon) == nil)
            try await stores[1].pool.write { db in try db.execute("DELETE FROM sender") }
            #expect(try await stores[2].becomeDaemon(owner: Self.names[2], now: noon) == nil)
            // Fenced as any other that was taken over.
            await #expect(throws: StoreError.senderLost(Self.names[1])) {
                try await stores[1].beat(Self.names[1], SenderFacts())
            }
        }
    }

    /// Stopped in the middle of an answer that does not fit into its socket: no time limit of the server's counts
    /// there, and the transaction holds the sender's right to the run.
    @Test func `a takeover ends the transactions of the sender that it fences`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            try await stores[0].beat(Self.names[0], SenderFacts())
            let (isHeld, mayEnd) = (AsyncStream<Void>.makeStream(), DispatchSemaphore(value: 0))
            let stuck = Task { [store = stores[0]] in
                // A takeover that waited for the end of this would fail before.
                try await store.write(.quick.within(Process.longest)) { db in
                    try db.standStill()
                    try RunOwner.require(Self.names[0], of: run, db)
                    isHeld.continuation.finish()
                    mayEnd.wait()
                    try db.run("SELECT 1")
                }
            }
            for await _ in isHeld.stream {}
            try await silence(Self.names[0], stores[1])
            try await stores[1].beat(Self.names[1], SenderFacts())
            try await endQuietTime(stores[1])
            #expect(try await stores[1].takeOverLeases(of: run, besides: nil) == [Self.names[0]])
            mayEnd.signal()
            await #expect(throws: StoreError.self) { try await stuck.value }
        }
    }

    @Test func `a server's clock that was set back hides nobody who is gone`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            for name in Self.names.prefix(2) { try await shift(name, byMilliseconds: 3_600_000, stores[0]) }
            try await stores[0].beat(Self.names[0], SenderFacts())
            #expect(try await stores[0].takeOverLeases(of: run, besides: nil).isEmpty)
            try await endQuietTime(stores[0])
            #expect(try await stores[0].takeOverLeases(of: run, besides: nil) == [Self.names[1]])
        }
    }

    @Test func `a machine that knows a sender of its own to be gone recovers it, whoever leads the run`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            _ = try await stores[1].lease(run, limit: 10, owner: Self.names[1])
            #expect(try await stores[0].abandonedRuns().isEmpty)
            let url = stores[0].pool.address.description
            let knowing = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600)) {
                $0 != Self.names[1]
            }
            // Its process has ended, but its trust window may be open still: a younger heartbeat would prove that it
            // lives. One from the near future keeps it open for longer than a call takes on a slow machine.
            let beat = {
                try await stores[1].beat(Self.names[1], SenderFacts())
                try await shift(Self.names[1], byMilliseconds: 2_000, stores[0])
            }
            try await beat()
            #expect(try await knowing.abandonedRuns().isEmpty)
            try await beat()
            #expect(try await knowing.takeOverLeases(of: run, besides: nil).isEmpty)
            try await beat()
            #expect(try await Array(knowing.endedLately().keys) == [Self.names[1]])
            try await shift(Self.names[1], byMilliseconds: -5_000, stores[0])
            #expect(try await knowing.endedLately().isEmpty)
            #expect(try await knowing.abandonedRuns().map(\.id) == [run])
            #expect(try await knowing.takeOverLeases(of: run, besides: nil) == [Self.names[1]])
            let left = try await knowing.abandonedLeases(run)
            _ = try await knowing.recover(run, heldBy: Self.names[0], left, [], now: noon)
            #expect(try await knowing.abandonedRuns().isEmpty)
            #expect(try await stores[0].lease(run, owner: Self.names[0]).deliveries.count == 30)
            try knowing.close()
        }
    }

    @Test func `what a sender left itself it may recover when it takes part again`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            let lease = try await stores[1].lease(run, limit: 10, owner: Self.names[1])
            try await stores[1].leave(run, by: Actor(Self.names[1]), now: noon)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            let left = try await stores[1].abandonedLeases(run)
            #expect(left.map(\.id) == [lease.id])
            let counts = try await stores[1].recover(run, heldBy: Self.names[1], left, [], now: noon)
            #expect(counts.pending == 30 && counts.leased == 0)
        }
    }

    func withSenders(_ body: ([PostgresDatabase]) async throws -> Void) async throws {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        var stores: [PostgresDatabase] = []
        for _ in Self.names { stores.append(try await .open(url: url, takeoverAfter: .seconds(600))) }
        defer { for store in stores { try? store.close() } }
        try await body(stores)
    }

    /// A frozen run that the first sender leads.
    func start(_ store: PostgresDatabase, devices: Int) async throws -> Int64 {
        _ = try await store.importDevices(try (1...devices).map { try record($0) }, now: noon)
        return try await store.startRun(try definition(), owner: Self.names[0])
    }

    /// As if it had last been heard of an hour ago, and all others just now: not so that the next calls look like an
    /// outage.
    func silence(_ name: String, _ store: PostgresDatabase) async throws {
        try await shift(name, byMilliseconds: -3_600_000, store)
        try await store.pool.write { db in
            try db.execute("UPDATE sender SET heartbeat_at = \(StoreTime.now) + 2000 WHERE name <> $1", name)
        }
    }

    func shift(_ name: String, byMilliseconds time: Int64, _ store: PostgresDatabase) async throws {
        try await store.pool.write { db in
            try db.execute("UPDATE sender SET heartbeat_at = heartbeat_at + $2 WHERE name = $1", name, time)
        }
    }

    /// As if it had passed.
    private func endQuietTime(_ store: PostgresDatabase) async throws {
        try await store.pool.write { db in try db.execute("DELETE FROM sender_quiet") }
    }
}

extension RunClaim {
    var isHeld: Bool { if case .held = self { true } else { false } }
}
