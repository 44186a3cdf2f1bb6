import APNs
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import SQLiteStore
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
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            await scene.clock.sleeper(until: scene.clock.now + .seconds(900))
            scene.clock.advance(by: .seconds(900))
            // It has done its work when it waits for the night.
            let three = DateComponents(hour: 3, minute: 0, second: 0)
            let night = Calendar.current.nextDate(
                after: scene.clock.now.date, matching: three, matchingPolicy: .nextTime)
            await scene.clock.sleeper(until: Timestamp(try #require(night)))
            group.cancelAll()
            snapshot.finish()
            try await group.waitForAll()
        }
        let events = try await scene.store.events(run: nil, since: nil, limit: 100)
        #expect(events.filter { $0.kind == "outcomes_pruned" }.map(\.detail) == ["10 of 1 runs"])
        #expect(try await scene.store.report(old.id).counts.accepted == 10)
        #expect(
            try await scene.store.pruneOutcomes(
                finishedBefore: scene.clock.now, dryRun: true, now: scene.clock.now, by: "test"
            )
            .deliveries == 10)
    }

    private func daemon(_ scene: PipelineScene, retention: Duration) -> Scheduler {
        var intervals = Scheduler.DaemonIntervals()
        intervals.sleepMax = .seconds(2 * 86_400)
        let logger = Logger(label: "test")
        let senders = SenderRegistry(
            store: scene.store, actor: "daemon", clock: scene.clock.clock, jitter: { 0 }, logger: logger
        ) { _ in throw SendingError.noEndpoint(topic: "none") }
        return Scheduler(
            store: scene.store, senders: senders, actor: "daemon", clock: scene.clock.clock, intervals: intervals,
            web: HTTPClient(), retention: { retention }, logger: logger)
    }
}
