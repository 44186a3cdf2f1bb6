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
import Synchronization
import TestSupport
import Testing
import WebClient

/// A campaign with `best_hour` under the daemon, with a clock that is turned by hand.
@Suite(.timeLimit(.minutes(10))) struct `Best hours under the daemon` {
    private static let zones = ["Europe/Berlin", "America/New_York"]
    private static let devices = 24

    /// The hour at which the people of a device open the app. Every third device has no opens.
    private static func favourite(_ number: Int) -> Int? { number % 3 == 0 ? nil : 9 + number % 11 }
    private static func zone(_ number: Int) -> String { zones[number % 2] }

    private static let campaign: Campaign = {
        var campaign = Campaign(name: "c", topic: PipelineScene.topic, pushType: .background, template: "t")
        campaign.expiresAfter = .seconds(4 * 3600)
        campaign.feedback = CampaignFeedback()
        var schedule = Schedule(trigger: .at("2027-01-17T09:00"))
        schedule.zone = .recipient
        schedule.unknownZone = .drop
        schedule.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        campaign.schedule = schedule
        return campaign
    }()

    private func fill(_ scene: PipelineScene) async throws {
        let records = try (0..<Self.devices).map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.installationID = "install-\(number)"
            record.timeZone = Self.zone(number)
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
        var events: [FeedbackEvent] = []
        for number in 0..<Self.devices {
            guard let hour = Self.favourite(number) else { continue }
            let zone = try #require(TimeZone(identifier: Self.zone(number)))
            // Most people of the app open it at 13:00 as well.
            for (day, hour) in (0..<10).map({ ($0, $0 < 7 ? hour : 13) }) {
                let date = try #require(WallTime("2027-01-14")).seconds - Int64(day) * 86_400
                let at = zone.moment(of: WallTime(seconds: date + Int64(hour) * 3600 + 600))
                events.append(
                    FeedbackEvent(
                        source: .installation("install-\(number)", topic: PipelineScene.topic), kind: .appStarted,
                        id: (high: Int64(number), low: Int64(day)), at: at, receivedAt: at))
            }
        }
        _ = try await scene.store.recordFeedback(events)
    }

    private func daemon(_ scene: PipelineScene, _ transport: ScriptedTransport) -> Scheduler {
        var intervals = Scheduler.DaemonIntervals()
        intervals.lookEvery = .seconds(86_400)
        intervals.heartbeatEvery = .seconds(86_400)
        intervals.sleepMax = .seconds(400 * 86_400)
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let senders = LocalSender(
            store: scene.store, actor: "daemon", clock: scene.clock.clock, jitter: { 0 }, logger: logger
        ) { _ in
            SendingSetup(
                transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
                silentBudget: .init(limit: 100, window: .seconds(60)))
        }
        return Scheduler(
            store: scene.store, senders: senders, actor: "daemon", clock: scene.clock.clock, intervals: intervals,
            web: HTTPClient(addresses: .any), retention: { Configuration.Retention(outcomes: .seconds(3600 * 86_400)) },
            logger: logger)
    }

    /// Moves the clock from one turn to the next, once the pushes of the turn before are sent.
    private func turnByTurn(_ scene: PipelineScene) async throws {
        let run = try #require(try await scene.store.runs(limit: 9).first?.id)
        var expected = 0
        for wave in try await scene.store.waves(run) {
            let left = wave.startsAt - scene.clock.now
            if left > .zero {
                // The lane looks again after half a minute at most. It would sleep too long if the clock moved before.
                await scene.clock.sleeper(of: min(left, .seconds(30)))
                scene.clock.advance(by: left)
            }
            expected += wave.deliveries
            // Waves of several zones may start at one moment.
            while try await scene.store.run(run)?.counts.accepted ?? 0 < expected { await Task.yield() }
        }
    }

    @Test func `each device gets the push at its hour, and explain tells why`() async throws {
        let scene = try PipelineScene()
        try await fill(scene)
        let sent = Mutex<[Int: Timestamp]>([:])
        let clock = scene.clock
        let transport = ScriptedTransport { push, _ in
            sent.withLock { $0[PipelineScene.number(push.token)] = clock.now }
            return ScriptedTransport.accepted
        }
        let daemon = daemon(scene, transport)
        let ready = ReadyCampaign(campaign: Self.campaign, template: Template(name: "t"), changedAt: clock.now)
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        snapshot.yield(Scheduler.CampaignSnapshot(campaigns: [ready], names: [Self.campaign.name]))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            while daemon.status.nextStart == nil { await Task.yield() }
            let start = try #require(daemon.status.nextStart)
            await clock.sleeper(until: start)
            clock.advance(by: start - clock.now)
            while try await scene.store.runs(limit: 9).first?.isFrozen != true { await Task.yield() }
            try await turnByTurn(scene)
            while !daemon.status.running.isEmpty {
                await clock.advance(by: .seconds(600), settlingWithin: .seconds(1))
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        let run = try #require(try await scene.store.runs(limit: 9).first)
        #expect(run.state == .finished && run.counts.accepted == Self.devices)
        let split = CampaignSplit(Self.campaign)
        let times = sent.withLock { $0 }
        var ownHours = 0
        for number in 0..<Self.devices {
            // The devices of the store count from 1.
            let isOwn = split.getsOwnHour(Int64(number + 1))
            let favourite = Self.favourite(number)
            let expected = isOwn ? favourite ?? 13 : 13
            ownHours += expected == 13 ? 0 : 1
            let zone = try #require(TimeZone(identifier: Self.zone(number)))
            let local = zone.wall(at: try #require(times[number]))
            #expect(local.description == "2027-01-17T\(ClockHour.text(expected))", "\(number)")
            let explained = try await ExplainDevice(store: scene.store) { _ in nil }.explain(
                Int64(number + 1), now: clock.now)
            let text = try #require(explained.explanation.lines.last?.text)
            let reason =
                !isOwn
                ? "it is in the half that gets the app's hour"
                : favourite == nil
                    ? "the app's hour, because the device had 0 opens and needs 5"
                    : "the device opens the app most at \(ClockHour.text(expected)) "
                        + "(\(favourite == 13 ? 10 : 7) of 10 opens)"
            #expect(text.hasSuffix("by the device's clock: \(reason), allowed hours 09:00 to 21:00"), "\(text)")
        }
        #expect(ownHours > 3)
        let report = try await ReadFeedback(store: scene.store).report(
            of: run, accepted: AcceptedPushes(), now: clock.now)
        let halves = try #require(report?.bestHour)
        #expect(halves.ownHour.of + halves.usualHour.of == 0 || halves.lookedAtSeconds > 0)
        let last = try await ReadFeedback(store: scene.store).report(
            of: run, accepted: AcceptedPushes(), now: clock.now + .seconds(5 * 86_400))
        let final = try #require(last?.bestHour)
        #expect(final.isFinal && final.ownHour.of + final.usualHour.of == Self.devices)
        #expect(final.summary.contains("It is unclear whether own hours help"))
    }
}
