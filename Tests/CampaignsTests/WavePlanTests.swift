import Campaigns
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// Plans of runs that follow each device's own clock. It is 2027-01-15T08:00 in UTC: 17:00 in Tokyo, 9 in Berlin, 3 in New York.
@Suite(.timeLimit(.minutes(10))) struct `Planned waves` {
    private static let zones = ["Asia/Tokyo", "Europe/Berlin", "Europe/Paris", "America/New_York", "Pacific/Apia", nil]

    private func scene() async throws -> PipelineScene {
        let scene = try PipelineScene()
        let records = try Self.zones.enumerated().map { number, zone in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.timeZone = zone
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
        return scene
    }

    private func definition(
        _ scene: PipelineScene, _ missed: Schedule.MissedZone, unknown: Schedule.UnknownZone = .named("Asia/Kolkata"),
        quiet: Schedule.QuietHours? = nil
    ) throws -> RunDefinition {
        var schedule = Schedule(trigger: .at("2027-01-15T17:00"))
        schedule.zone = .recipient
        schedule.missedZone = missed
        schedule.unknownZone = unknown
        schedule.quietHours = quiet
        let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-15T17:00"))
        return try scene.definition { $0.schedule = schedule }.planned(for: occurrence)
    }

    @Test func `a plan tells them with their zones, and who gets nothing`() async throws {
        let scene = try await scene()
        var definition = try definition(scene, .drop, unknown: .drop)
        definition.campaign.pace = .init(pushesPerSecond: 1)
        let plan = try await Planner(store: scene.store).plan(definition, now: scene.clock.now)
        #expect(plan.waves.map { $0.startsAt.iso8601.dropFirst(8).prefix(8) } == ["15T08:00", "15T16:00", "15T22:00"])
        #expect(plan.waves.map(\.zones) == [["Asia/Tokyo"], ["Europe/Berlin", "Europe/Paris"], ["America/New_York"]])
        #expect(plan.waves.map(\.devices) == [1, 2, 1])
        #expect(plan.waves.map { ($0.endsAt ?? $0.startsAt) - $0.startsAt } == [.seconds(1), .seconds(2), .seconds(1)])
        #expect(plan.reach.total == 4)
        #expect(plan.reach.suppressed == [.late: 1, .unknownZone: 1])
        let early = try await Planner(store: scene.store).plan(definition, now: definition.plannedAt - .seconds(86_400))
        #expect(early.waves.count == 4)
    }
}
