import Campaigns
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// Plans of runs that follow each device's own clock. It is 2027-01-15T08:00 in UTC: 17:00 in Tokyo, 9 in Berlin, 3 in New York.
@Suite(.timeLimit(.minutes(10))) struct `Planned waves` {
    @Test func `a plan tells them with their zones, and who gets nothing`() async throws {
        let scene = try await PipelineScene.inZones()
        var definition = try scene.definitionInZones(.drop, unknown: .drop)
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
