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

/// The whole daemon under a clock that is turned by hand; for each change a third of a year.
@Suite(.timeLimit(.minutes(30))) struct `A year of the daemon` {
    private struct Row {
        var name: String
        var cron: String
        var zone: String
        /// The same for `Calendar`: weekday (1 is Sunday) or days of the month, hour and minute.
        var weekday: Int?
        var days: [Int] = []
        var hour: Int
        var minute: Int
        /// Where the clock leaves the time out, as `Calendar` would not have it: at the change.
        var gaps: [String] = []
    }

    private static let days: Int64 = Nightly.isOn ? 365 : 120

    private static let rows = [
        Row(name: "berlin", cron: "30 2 * * SUN", zone: "Europe/Berlin", weekday: 1, hour: 2, minute: 30),
        Row(name: "paulo", cron: "0 9 * * MON", zone: "America/Sao_Paulo", weekday: 2, hour: 9, minute: 0),
        Row(name: "kolkata", cron: "0 9 1,15,31 * *", zone: "Asia/Kolkata", days: [1, 15, 31], hour: 9, minute: 0),
        Row(
            name: "howe", cron: "15 2 * * SUN", zone: "Australia/Lord_Howe", weekday: 1, hour: 2, minute: 15,
            gaps: ["2027-10-02T15:30"]),
        Row(name: "apia", cron: "0 0 * * SAT", zone: "Pacific/Apia", weekday: 7, hour: 0, minute: 0),
    ]
    private static let zones = ["Europe/Berlin", "America/Sao_Paulo", "Mars/Olympus", nil]

    private static func campaign(
        _ name: String, _ cron: String, _ zone: Schedule.Zone, changedAt: Timestamp
    ) -> ReadyCampaign {
        var campaign = Campaign(name: name, topic: PipelineScene.topic, pushType: .background, template: "t")
        campaign.expiresAfter = nil
        var schedule = Schedule(trigger: .cron(cron))
        schedule.zone = zone
        schedule.unknownZone = .named("Asia/Kolkata")
        campaign.schedule = schedule
        return ReadyCampaign(campaign: campaign, template: Template(name: "t"), changedAt: changedAt)
    }

    private func addDevices(_ scene: PipelineScene) async throws {
        let records = try Self.zones.enumerated().map { number, zone in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.timeZone = zone
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
    }

    @Test func `starts every occurrence once, and no other`() async throws {
        let scene = try PipelineScene()
        try await addDevices(scene)
        let start = scene.clock.now
        let end = start + .seconds(Self.days * 86_400)
        var campaigns = Self.rows.map { Self.campaign($0.name, $0.cron, .named($0.zone), changedAt: start) }
        campaigns.append(Self.campaign("everywhere", "0 9 1 * *", .recipient, changedAt: start))
        let daemon = daemon(scene)
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        snapshot.yield(Scheduler.CampaignSnapshot(campaigns: campaigns, names: Set(campaigns.map(\.campaign.name))))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            while daemon.status.nextStart == nil { await Task.yield() }
            while let next = daemon.status.nextStart, next <= end {
                await scene.clock.sleeper(until: next)
                scene.clock.advance(by: next - scene.clock.now)
                // Until it has looked again, and sent what it found, or begun what waits for its zones: a run that lies
                // about for days is late.
                while daemon.status.nextStart == next { await Task.yield() }
                while try await !hasBegun(scene, next) {
                    // A look reads the store, and takes time from what it waits for.
                    for _ in 0..<100 { await Task.yield() }
                }
            }
            // The last ones to their end.
            while !daemon.status.running.isEmpty {
                await scene.clock.advance(by: .seconds(600), settlingWithin: .seconds(1))
            }
            group.cancelAll()
            try await group.waitForAll()
        }
        let runs = try await scene.store.runs(limit: 10_000).filter { $0.definition.plannedAt <= end }
        #expect(
            runs.filter { $0.state != .finished }.map { "\($0.campaign) \($0.occurrence) \($0.stateReason ?? "")" }
                == [])
        for row in Self.rows {
            let found = runs.filter { $0.campaign == row.name }.map(\.definition.plannedAt).sorted()
            #expect(found == (try Self.expected(row, start, end)), "\(row.name)")
        }
        let everywhere = runs.filter { $0.campaign == "everywhere" }
        #expect(everywhere.count == Int(Self.days) / 30)
        #expect(everywhere.allSatisfy { $0.counts.accepted == Self.zones.count })
    }

    /// No two of the campaigns start at one moment.
    private func hasBegun(_ scene: PipelineScene, _ start: Timestamp) async throws -> Bool {
        try await scene.store.runs(limit: 9).contains { run in
            run.definition.plannedAt == start
                && (run.state == .finished || run.campaign == "everywhere" && run.startedAt != nil)
        }
    }

    private func daemon(_ scene: PipelineScene) -> Scheduler {
        var intervals = Scheduler.DaemonIntervals()
        intervals.lookEvery = .seconds(86_400)
        intervals.heartbeatEvery = .seconds(86_400)
        intervals.recoverEvery = .seconds(86_400)
        intervals.sleepMax = .seconds(400 * 86_400)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let senders = LocalSender(
            store: scene.store, actor: "daemon", clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test")
        ) { _ in
            SendingSetup(
                transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
                silentBudget: .init(limit: 100, window: .seconds(60)))
        }
        var logger = Logger(label: "test")
        logger.logLevel = .error
        return Scheduler(
            store: scene.store, senders: senders, actor: "daemon", clock: scene.clock.clock, intervals: intervals,
            web: HTTPClient(addresses: .any), retention: { Configuration.Retention(outcomes: .seconds(3600 * 86_400)) },
            logger: logger)
    }

    /// By the calendar of Foundation, which looks for the next match in its own way.
    private static func expected(_ row: Row, _ start: Timestamp, _ end: Timestamp) throws -> [Timestamp] {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: row.zone))
        let patterns = row.days.isEmpty ? [nil] : row.days.map(Optional.init)
        var found = Set(row.gaps.compactMap(WallTime.init).map { Timestamp(seconds: $0.seconds) }.filter { $0 <= end })
        for day in patterns {
            let parts = DateComponents(day: day, hour: row.hour, minute: row.minute, second: 0, weekday: row.weekday)
            var date = start.date
            while let next = calendar.nextDate(
                after: date, matching: parts, matchingPolicy: day == 31 || !row.gaps.isEmpty ? .strict : .nextTime,
                repeatedTimePolicy: .first), Timestamp(next) <= end
            {
                found.insert(Timestamp(next))
                date = next
            }
        }
        return found.sorted()
    }
}
