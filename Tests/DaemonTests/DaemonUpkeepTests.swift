import APNs
import Campaigns
import Daemon
import Foundation
import GRDB
import Logging
import Model
@testable import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing
import WebClient

/// What the daemon does besides sending, under a clock that is turned by hand.
@Suite(.timeLimit(.minutes(10))) struct `The daemon's upkeep` {
    @Test func `folds outcomes past their retention and leaves the reports and the younger ones`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let old = try await scene.start(try scene.definition(), occurrence: "old")
        #expect(try await scene.execute(old, transport) == .finished)
        scene.clock.advance(by: .seconds(20 * 86_400))
        let young = try await scene.start(try scene.definition(), occurrence: "young")
        #expect(try await scene.execute(young, transport) == .finished)
        scene.clock.advance(by: .seconds(15 * 86_400))
        let daemon = daemon(scene, retention: .seconds(30 * 86_400))
        try await runUntilNight(daemon, scene) { scene.clock.advance(by: .seconds(3600)) }
        let events = try await scene.store.events(run: nil, since: nil, limit: 100)
        #expect(events.filter { $0.kind == "outcomes_pruned" }.map(\.detail) == ["10 of 1 run"])
        #expect(try await scene.store.report(old.id).counts.accepted == 10)
        #expect(
            try await scene.store.pruneOutcomes(
                finishedBefore: scene.clock.now, dryRun: true, now: scene.clock.now, by: "test"
            )
            .deliveries == 10)
    }

    @Test func `deletes old messages to webhooks that no configuration names, and no others`() async throws {
        let scene = try PipelineScene()
        let (kept, removed) = ("http://127.0.0.1:1/kept", "http://127.0.0.1:1/removed")
        try await scene.store.setWebhooks([.init(url: kept, secretPath: ""), .init(url: removed, secretPath: "")])
        _ = try await scene.store.createEndedRun(
            try scene.definition(), occurrence: "o", state: .missed, reason: "why", now: scene.clock.now, by: "test")
        try await scene.store.setWebhooks([.init(url: kept, secretPath: "")])
        func messages() async throws -> [String] {
            try await scene.store.read { db in
                try String.fetchAll(db, sql: "SELECT url FROM webhook_message ORDER BY url")
            }
        }
        #expect(try await messages() == [kept, removed])
        scene.clock.advance(by: WebhookDispatcher.keptFor)
        let daemon = daemon(scene, retention: .seconds(30 * 86_400))
        try await runUntilNight(daemon, scene) { scene.clock.advance(by: .seconds(3600)) }
        #expect(try await messages() == [kept])
    }

    @Test func `deletes nothing by a hardware clock that is far ahead, and works again when it is right`() async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let run = try await scene.start(try scene.definition())
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.execute(run, transport) == .finished)
        let ahead = Duration.seconds(60 * 86_400)
        scene.clock.setWall(by: ahead)
        let daemon = daemon(scene, retention: .seconds(30 * 86_400))
        try await runUntilNight(daemon, scene) {
            scene.clock.advance(by: .seconds(3599))
            scene.clock.setWall(by: .zero - ahead)
            scene.clock.advance(by: .seconds(1))
        }
        let events = try await scene.store.events(run: nil, since: nil, limit: 100)
        #expect(!events.contains { $0.kind == "outcomes_pruned" })
        #expect(try await scene.store.history(ofDevice: 1, limit: 1).count == 1)
    }

    @Test func `a clock set forward for a moment makes no occurrence missed, early or lost`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1)
        var campaign = try scene.definition().campaign
        var schedule = Schedule(trigger: .cron("0 * * * *"))
        schedule.zone = .named("UTC")
        schedule.lateByMax = .seconds(600)
        (campaign.schedule, campaign.expiresAfter) = (schedule, nil)
        let ready = ReadyCampaign(
            campaign: campaign, template: try scene.definition().template, changedAt: scene.clock.now)
        let snapshot = Scheduler.CampaignSnapshot(campaigns: [ready], names: [campaign.name])
        let daemon = daemon(scene, retention: .seconds(30 * 86_400))
        func look() async throws -> [String] {
            _ = try? await daemon.runOnce(snapshot, idleLimit: .zero)
            return try await scene.store.runs(limit: 100).map { "\($0.definition.plannedAt.iso8601) \($0.state)" }
        }
        #expect(try await look() == [])
        scene.clock.advance(by: .seconds(60))
        scene.clock.setWall(by: .seconds(5 * 3600))
        #expect(try await look() == [])
        scene.clock.advance(by: .seconds(4))
        scene.clock.setWall(by: .seconds(-5 * 3600))
        #expect(try await look() == [])
        // 2027-01-15T09:00:04Z.
        scene.clock.advance(by: .seconds(3540))
        let first = try await look()
        #expect(first.count == 1 && first[0].hasPrefix("2027-01-15T09:00:00Z") && !first[0].contains("missed"))
        // A step that stays counts once it is confirmed.
        scene.clock.setWall(by: .seconds(3600))
        #expect(try await look().count == 1)
        scene.clock.advance(by: ConfirmedTime.confirmedAfter)
        let second = try await look()
        #expect(second.count == 2 && second[0].hasPrefix("2027-01-15T10:00:00Z") && !second[0].contains("missed"))
    }

    @Test func `a daemon whose store a newer program has brought up to date ends, and says why`() async throws {
        let scene = try PipelineScene()
        let daemon = daemon(scene, retention: .seconds(30 * 86_400))
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        defer { snapshot.finish() }
        async let end: Void = daemon.run(snapshots)
        await scene.clock.sleeper(atLeast: .seconds(3))
        try Schema.migrate(scene.store.pool, path: scene.store.path, Schema.migrations + ["SELECT 1"])
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(3))
        let newer = StoreError.newerVersion(
            path: scene.store.path, found: Schema.version + 1, known: Schema.version)
        do {
            try await end
            Issue.record("it goes on")
        } catch { #expect(error as? StoreError == newer) }
        scene.clock.release()
        await driver
    }

    /// Runs the daemon through the hour after its start, as `hour` lets it pass. The daemon has done its work when it
    /// waits for the night.
    private func runUntilNight(_ daemon: Scheduler, _ scene: PipelineScene, _ hour: () -> Void) async throws {
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            await scene.clock.sleeper(until: scene.clock.now + .seconds(3600))
            hour()
            let three = DateComponents(hour: 3, minute: 0, second: 0)
            let night = Calendar.current.nextDate(
                after: scene.clock.now.date, matching: three, matchingPolicy: .nextTime)
            await scene.clock.sleeper(until: Timestamp(try #require(night)))
            group.cancelAll()
            snapshot.finish()
            try await group.waitForAll()
        }
    }

    private func daemon(_ scene: PipelineScene, retention: Duration) -> Scheduler {
        var intervals = Scheduler.DaemonIntervals()
        intervals.sleepMax = .seconds(2 * 86_400)
        let logger = Logger(label: "test")
        let senders = LocalSender(
            store: scene.store, actor: "daemon", clock: scene.clock.clock, jitter: { 0 }, logger: logger
        ) { _ in throw SendingError.noEndpoint(topic: "none") }
        return Scheduler(
            store: scene.store, senders: senders, actor: "daemon", clock: scene.clock.clock, intervals: intervals,
            web: HTTPClient(addresses: .any),
            retention: { Configuration.Retention(outcomes: retention, events: retention) }, logger: logger)
    }
}
