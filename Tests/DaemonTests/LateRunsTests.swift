import APNs
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Platform
import SQLiteStore
import Senders
import Sending
import SendingScene
import Store
import TestSupport
import Testing
import WebClient

/// A daemon that is killed in a run and started again hours later, under a clock that is turned by hand.
@Suite(.timeLimit(.minutes(10))) struct `A daemon that comes back` {
    private static let devices = 100

    private func daemon(
        _ store: SQLiteFileStore, _ clock: ManualClock, _ transport: any APNs.Transport, named name: String
    ) -> Scheduler {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let senders = LocalSender(
            store: store, actor: Actor(name), clock: clock.clock, jitter: { 0 }, logger: logger
        ) { _ in
            SendingSetup(
                transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
                silentBudget: .init())
        }
        return Scheduler(
            store: store, senders: senders, actor: Actor(name), clock: clock.clock, web: HTTPClient(addresses: .any),
            retention: { Configuration.Retention(outcomes: .seconds(400 * 86_400)) }, logger: logger)
    }

    /// Carries the daemon on until `body` is done.
    private func running(_ daemon: Scheduler, _ body: () async throws -> Void) async throws {
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        defer { snapshot.finish() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            try await body()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    /// The store as SIGKILL leaves it: a copy of its files from the middle of a run that had begun at noon.
    private func killed(_ scene: PipelineScene) async throws -> (store: SQLiteFileStore, run: Run) {
        try await scene.addDevices(0..<Self.devices)
        let run = try await scene.start(
            try scene.definition { campaign in
                var schedule = Schedule(trigger: .none)
                schedule.lateByMax = .seconds(600)
                campaign.schedule = schedule
                campaign.expiresAfter = .seconds(86_400)
            })
        let isOver = Signal()
        let answered = Watched(0)
        let slow = SlowTransport(answersAtOnce: 10) {
            let times = answered.change { count in
                count += 1
                return count
            }
            // Three times ten are answered, the others not while the process lives.
            if times > 3 { await isOver.waitUncancelled(after: 0) }
        }
        let path = scene.folder.file("killed.sqlite")
        try await running(daemon(scene.store, scene.clock, slow, named: "first")) {
            while try await scene.store.run(run.id)?.counts.accepted != 30 { await Task.yield() }
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: scene.folder.file("store.sqlite" + suffix), toPath: path + suffix)
            }
            isOver.raise()
        }
        return (try SQLiteFileStore(path: path) { $0 != "first" }, run)
    }

    @Test func `pauses a run that it has no key for, and what a dead process left of it is in doubt for nobody else`()
        async throws
    {
        struct NoKey: Error, CustomStringConvertible { var description: String { "no key for com.example.app" } }
        let scene = try PipelineScene()
        let (store, run) = try await killed(scene)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let isMended = Watched(false)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        // Queued, as far as the journal of the first goes: nobody was asked for.
        let journals = SenderJournals(own: nil) { _ in .success(JournalEvidence(entries: [:])) }
        let senders = LocalSender(
            store: store, actor: Actor("second"), clock: scene.clock.clock, jitter: { 0 }, logger: logger,
            journals: journals
        ) { _ in
            guard isMended.change({ $0 }) else { throw NoKey() }
            return SendingSetup(
                transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
                silentBudget: .init()
            ).journaling(in: journals)
        }
        #expect(try await senders.execute(run, idleLimit: nil) == .credentialRefused("no key for com.example.app"))
        let paused = try #require(try await store.run(run.id))
        #expect(paused.state == .paused && paused.halt == .credential && paused.owner == nil)
        #expect(paused.counts.unknown == 0 && paused.counts.leased == 0 && paused.counts.pending == 70)
        isMended.change { $0 = true }
        async let work: Void = senders.work()
        #expect(try await senders.execute(run, idleLimit: nil) == .finished)
        senders.close()
        await work
        #expect(try await store.report(run.id).counts.accepted == Self.devices && transport.seen.count == 70)
    }

    @Test func `asks before it sends what should have gone nine hours ago`() async throws {
        let scene = try PipelineScene()
        let (store, run) = try await killed(scene)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        try await store.setWebhooks([.init(url: "https://a.example", secretPath: "/s")])
        scene.clock.advance(by: .seconds(9 * 3600))
        try await running(daemon(store, scene.clock, transport, named: "second")) {
            while try await store.run(run.id)?.state == .running { await Task.yield() }
            let late = try #require(try await store.run(run.id))
            #expect(late.halt == .late && late.pausedBy == nil)
            #expect(
                late.stateReason?.hasPrefix("70 of 100 were due from 2027-01-15 08:00 UTC, and no process") == true)
            let message = try await store.takeWebhookMessages(
                now: scene.clock.now, limit: 9, until: scene.clock.now + .seconds(60))
            #expect(message.map(\.kind) == [.late])
            // However often it looks for work.
            for _ in 0..<100 {
                await scene.clock.advance(by: .milliseconds(500), settlingWithin: .seconds(1))
            }
            #expect(transport.seen.isEmpty)
            #expect(try await store.run(run.id)?.halt == .late)
            _ = try await Recovery(store: store, journals: .none, clock: scene.clock.clock).recoverAbandoned()
            try await store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
            while try await store.run(run.id)?.state != .finished {
                try Task.checkCancellation()
                // The clock must not run ahead of a slow machine until the run is late again.
                await scene.clock.advance(by: .milliseconds(500), settlingWithin: .seconds(1))
            }
        }
        let counts = try await store.report(run.id).counts
        #expect(counts.accepted == Self.devices && transport.seen.count == 70)
        #expect(try await store.check(run.id).problems.isEmpty)
        try store.close()
    }

    @Test func `goes on by itself within late_by_max`() async throws {
        let scene = try PipelineScene()
        let (store, run) = try await killed(scene)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        scene.clock.advance(by: .seconds(600))
        try await running(daemon(store, scene.clock, transport, named: "second")) {
            while try await store.run(run.id)?.state != .finished { await Task.yield() }
        }
        #expect(transport.seen.count == 70)
        try store.close()
    }

    @Test func `tells who asked once what is late, missed and refused`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let forgotten = try await scene.start(try scene.definition(), occurrence: "forgotten")
        scene.clock.advance(by: .seconds(4 * 3600))
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        func campaign(_ name: String, _ start: String, _ change: (inout Campaign) -> Void = { _ in }) -> ReadyCampaign {
            var campaign = Campaign(name: name, topic: PipelineScene.topic, pushType: .background, template: "t")
            campaign.schedule = Schedule(trigger: .at(start))
            campaign.schedule?.zone = .named("UTC")
            change(&campaign)
            return ReadyCampaign(
                campaign: campaign, template: Template(name: "t"), changedAt: scene.clock.now - .seconds(4 * 3600))
        }
        let campaigns = [
            campaign("missed", "2027-01-15T09:00"), campaign("due", "2027-01-15T11:50"),
            campaign("refused", "2027-01-15T11:50") { $0.guards.minReach = 5 },
        ]
        let snapshot = Scheduler.CampaignSnapshot(campaigns: campaigns, names: Set(campaigns.map(\.campaign.name)))
        let first = try await daemon(scene.store, scene.clock, transport, named: "first")
            .runOnce(snapshot, idleLimit: .zero)
        #expect(first.faults.isEmpty)
        let ends = Dictionary(uniqueKeysWithValues: first.runs.map { ($0.run.campaign, $0.end) })
        #expect(ends["due"] == .finished)
        #expect(ends["missed"] == .missed("found 3h after its time; late_by_max is 1h"))
        guard case .refused = ends["refused"], case .late = ends["c"] else {
            Issue.record("\(ends)")
            return
        }
        #expect(first.runs.map(\.run.id).contains(forgotten.id) && transport.seen.count == 3)
        let second = try await daemon(scene.store, scene.clock, transport, named: "second")
            .runOnce(snapshot, idleLimit: .zero)
        #expect(second.runs.isEmpty && second.faults.isEmpty)
    }
}
