import Campaigns
import Model
@testable import PostgresStore
import Senders
import Sending
import Store
import StoreContract
import TestSupport
import Testing

// What senders know of each other beyond who lives.
extension SenderTests {
    @Test func `a machine that fences a sender early has the takeover timeout for all its runs, with its journal`()
        async throws
    {
        try await withSenders { stores in
            let runs = [try await start(stores[0], devices: 30), try await startAnother(stores[0])]
            for run in runs { _ = try await stores[0].lease(run, limit: 10, owner: Self.names[0]) }
            let url = stores[0].pool.address.description
            let own = try await PostgresDatabase.open(url: url, takeoverAfter: .seconds(600)) { $0 != Self.names[0] }
            // Before other machines may take it over.
            try await stores[1].beat(Self.names[1], SenderFacts())
            try await shift(Self.names[0], byMilliseconds: -400_000, stores[0])
            #expect(try await own.takeOverLeases(of: runs[0], besides: nil) == [Self.names[0]])
            let unheardFor = try await stores[1].read(.short) { db in
                try db.first("SELECT \(StoreTime.now) - heartbeat_at FROM sender WHERE name = $1", Self.names[0]) {
                    try $0.int64(0)
                }
            }
            #expect(try #require(unheardFor) < 300_000)
            for run in runs {
                #expect(try await stores[1].takeOverLeases(of: run, besides: nil).isEmpty)
                #expect(try await stores[1].claim(run, by: Actor(Self.names[1]), now: noon).isHeld)
            }
            #expect(try await stores[1].senders().first { $0.name == Self.names[0] }?.state == .gone)
            // The next run that it recovers renews it again.
            try await shift(Self.names[0], byMilliseconds: -400_000, stores[0])
            #expect(try await own.takeOverLeases(of: runs[1], besides: nil) == [Self.names[0]])
            #expect(try await stores[1].takeOverLeases(of: runs[1], besides: nil).isEmpty)
            // A machine that goes away in the middle keeps nothing.
            try await silence(Self.names[0], stores[0])
            #expect(try await own.takeOverLeases(of: runs[1], besides: nil) == [Self.names[0]])
            #expect(try await stores[1].takeOverLeases(of: runs[1], besides: nil) == [Self.names[0]])
            try own.close()
        }
    }

    @Test func `a look at the others tells who is fit, who is idle, and which leases are one's own`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            for index in 1...2 { #expect(try await stores[index].join(run, by: Actor(Self.names[index]))) }
            let lease = try await stores[0].lease(run, limit: 10, owner: Self.names[0])
            _ = try await stores[1].lease(run, limit: 10, owner: Self.names[1])
            var (participants, tries) = (RunParticipants(), 0)
            // On a busy machine a heartbeat may be too old a moment later.
            while participants.fit < 2, tries < 50 {
                for (store, name) in zip(stores, Self.names) { try await store.beat(name) }
                participants = try await stores[0].participants(of: run, apartFrom: Self.names[0])
                tries += 1
            }
            #expect(
                participants.leases == [lease.id] && participants.others == 2 && participants.fit == 2
                    && participants.idle == 1)
            var facts = SenderFacts()
            facts.isTooSlow = true
            try await stores[2].beat(Self.names[2], facts)
            participants = try await stores[0].participants(of: run, apartFrom: Self.names[0])
            #expect(participants.fit <= 1 && participants.idle == 0)
            _ = try await stores[0].settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(try await stores[0].participants(of: run, apartFrom: Self.names[0]).leases.isEmpty)
        }
    }

    @Test func `who may still start something of a run is known, and a sender that retires is forgotten`() async throws
    {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            var (at, tries) = ([SenderAtRun](), 0)
            while at.first?.mayStart != true, tries < 50 {
                try await stores[0].beat(Self.names[0])
                try await shift(Self.names[1], byMilliseconds: -3_000, stores[0])
                at = try await stores[2].senders(at: [run])
                tries += 1
            }
            #expect(at.map(\.name) == Array(Self.names.prefix(2)) && at.map(\.mayStart) == [true, false])
            // Something stands under its name.
            try await stores[1].retire(Self.names[1])
            #expect(try await stores[2].senders().contains { $0.name == Self.names[1] })
            try await stores[1].leave(run, by: Actor(Self.names[1]), now: noon)
            try await stores[1].retire(Self.names[1])
            #expect(try await !stores[2].senders().contains { $0.name == Self.names[1] })
        }
    }

    @Test func `a stop names a sender that leaves without a word while it is waited for`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 30)
            #expect(try await stores[1].join(run, by: Actor(Self.names[1])))
            for index in 0...1 { try await stores[index].beat(Self.names[index]) }
            let folder = try TemporaryDirectory()
            let (first, second) = (stores[0], stores[1])
            let clock = WallClock(
                now: { noon }, uptime: { .zero },
                sleep: { _ in
                    // As whoever declares it dead, and as one that has heard of the stop.
                    try? await second.leave(run, by: Actor(Self.names[1]), now: noon)
                    try? await first.recordEvent(
                        kind: .runStopped, run: run, actor: Actor(Self.names[0]), detail: "7 requests were started",
                        now: noon)
                    try? await first.release(run, by: Actor(Self.names[0]), state: .running, reason: nil, now: noon)
                })
            let stopping = StopSending(
                store: stores[2], senders: SenderFolder(besideStore: folder.file("store"), command: "test") { noon },
                clock: clock)
            let went = try await stopping.whatWent(in: StopOrder(.all, by: "anna", at: noon))
            #expect(went.isQuiet && went.runs.map(\.startedAfter) == [7])
            #expect(went.unconfirmed.map(\.process) == [ProcessName.shown(Self.names[1])])
            #expect(went.unconfirmed.first?.mayStart == false && went.unconfirmed.first?.runs == [run])
        }
    }

    @Test func `a stop of a run that is over or absent leaves the file with the next sender`() async throws {
        try await withSenders { stores in
            let run = try await start(stores[0], devices: 3)
            try await stores[0].change(run, to: .cancelled, reason: nil, now: noon, by: "anna")
            let folder = try TemporaryDirectory()
            let senders = SenderFolder(besideStore: folder.file("store"), command: "test") { noon }
            func record() async throws -> [StopOrder.Scope] {
                try await StopWatch.following(senders).record(in: stores[1], now: noon)
                return senders.stopFile.read().orders.map(\.scope)
            }
            for number in [run, run + 7] { _ = try senders.stopFile.put(StopOrder(.run(number), by: "anna", at: noon)) }
            // Its owner may still wait for responses.
            #expect(try await record() == [.run(run)])
            try await stores[0].release(run, by: Actor(Self.names[0]), state: .running, reason: nil, now: noon)
            #expect(try await record().isEmpty)
        }
    }

    @Test func `all senders go by the server's clock`() async throws {
        try await withSenders { stores in
            let times = try stores.map { try #require($0.storeTime) }
            // The answer may take its time on the way.
            let before = times.map { $0() }
            let answer = try await stores[0].pool.write { db in
                try db.first("SELECT \(StoreTime.now)") { try $0.timestamp(0) }
            }
            let server = try #require(answer)
            for (time, first) in zip(times, before) {
                #expect(first - .seconds(60) < server && server < time() + .seconds(60))
            }
        }
    }

    /// A run for devices that are there.
    private func startAnother(_ store: PostgresDatabase) async throws -> Int64 {
        try await store.startRun(try definition("another"), owner: Self.names[0])
    }
}
