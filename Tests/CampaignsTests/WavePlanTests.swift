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

    @Test func `a plan tells which zones get nothing because a stage waits for another zone`() async throws {
        let scene = try await PipelineScene.inZones()
        var definition = try scene.definitionInZones(.drop, unknown: .drop)
        let seeds = AudienceExpression.comparison(.timeZone, .equal, .text("Europe/Berlin"))
        definition.campaign.stages = [Stage(.seeds(seeds)), Stage(.rest)]
        let planner = Planner(store: scene.store)
        let now = definition.plannedAt - .seconds(86_400)
        let stages = try await planner.plan(definition, now: now).stages
        let expired = try #require(stages.last?.lost.first)
        #expect(expired.beginsAt.iso8601.hasPrefix("2027-01-15T16:00") && expired.devices == 2)
        #expect(expired.cause == .expired && expired.zones == ["Asia/Tokyo", "Pacific/Apia"] && stages[0].lost.isEmpty)
        #expect(
            stages[1].summary.contains { $0.hasPrefix("2 of 4 devices (Asia/Tokyo, Pacific/Apia) would get nothing") })
        // With a life of a day, all get it.
        definition.campaign.expiresAfter = .seconds(86_400)
        #expect(try await planner.plan(definition, now: now).stages.allSatisfy(\.lost.isEmpty))
    }

    @Test func `a plan tells that the rest expires when a hold begins only after quiet hours`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        var schedule = Schedule(trigger: .none)
        schedule.quietHours = Schedule.QuietHours(fromMinute: 6 * 60, toMinute: 15 * 60, policy: .defer)
        let definition = try scene.definition {
            $0.expiresAfter = .seconds(10 * 3600)
            $0.schedule = schedule
            $0.stages = [Stage(.share(30), hold: .seconds(4 * 3600), toleratePercent: 5), Stage(.rest)]
        }
        let stages = try await Planner(store: scene.store).plan(definition, now: scene.clock.now).stages
        let expired = try #require(stages.last?.lost.first)
        #expect(expired.devices == stages[1].devices.count && expired.devices > 0 && expired.zones.isEmpty)
        #expect(expired.beginsAt.iso8601.hasPrefix("2027-01-15T19:00") && expired.cause == .expired)
    }

    @Test(
        arguments: [
            (
                .drop, nil,
                "the stage can begin at 2027-01-15T11:00:00Z, in their quiet hours; let the earlier stages end sooner, or "
                    + "write `policy: defer`"
            ),
            (
                .defer, 10,
                "the stage can begin at 2027-01-15T11:00:00Z, in their quiet hours, and their pushes expire before these "
                    + "end; write a longer expires_after, or let the earlier stages end sooner"
            ),
            (
                .drop, 2,
                "their pushes expire before the stage can begin at 2027-01-15T11:00:00Z; write a longer expires_after, or "
                    + "let the earlier stages end sooner"
            ),
            (.defer, nil, nil),
        ] as [(Schedule.QuietHours.Policy, Int64?, String?)])
    func `a plan names the cause why a stage that begins in quiet hours reaches no device`(
        policy: Schedule.QuietHours.Policy, hours: Int64?, reason: String?
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        var schedule = Schedule(trigger: .none)
        schedule.quietHours = Schedule.QuietHours(fromMinute: 10 * 60, toMinute: 20 * 60, policy: policy)
        let definition = try scene.definition {
            $0.expiresAfter = hours.map { .seconds($0 * 3600) }
            $0.schedule = schedule
            $0.stages = [Stage(.share(30), hold: .seconds(3 * 3600), toleratePercent: 5), Stage(.rest)]
        }
        let stages = try await Planner(store: scene.store).plan(definition, now: scene.clock.now).stages
        let devices = stages[1].devices.count
        let words = reason.map { ["\(devices) of \(devices) devices would get nothing: \($0)"] } ?? []
        #expect(devices > 0 && stages[0].lost.isEmpty)
        #expect(stages[1].lost.map { $0.summary(of: devices) } == words && stages[1].summary.dropFirst() == words[...])
    }

    @Test func `a plan with best hours tells the app's hour and the surge`() async throws {
        let scene = try await PipelineScene.inZones()
        var definition = try scene.definitionInZones(.nextDay, unknown: .drop)
        definition.campaign.schedule?.bestHour = Schedule.BestHours(untilMinute: 20 * 60)
        definition.campaign.schedule?.quietHours = Schedule.QuietHours(
            fromMinute: 18 * 60, toMinute: 8 * 60, policy: .drop)
        definition.campaign.feedback = CampaignFeedback()
        let planner = Planner(store: scene.store)
        let now = definition.plannedAt - .seconds(86_400)
        let first = try await planner.plan(definition, now: now)
        #expect(
            first.bestHourSummary
                == "17:00 to 20:00; no opens in these hours were reported in the last 90d, so each device gets the push "
                + "at 17:00")
        #expect(first.surgeSummary == "2 devices at 2027-01-15T16:00:00Z" && first.quiet?.suppressed == 0)
        // The device in Berlin opens the app at 18:30. It has no installation id, so a push names it.
        let earlier = try await scene.start(try scene.definition(), occurrence: "earlier")
        let open = Timestamp(seconds: try #require(WallTime("2027-01-13T17:30")).seconds)
        let events = (0..<6).map { number in
            let at = open - .seconds(Int64(number) * 86_400)
            return FeedbackEvent(
                source: .push(run: earlier.id, device: 2), kind: .action, name: "\(number)",
                id: (high: 0, low: Int64(number)), at: at, receivedAt: at)
        }
        _ = try await scene.store.recordFeedback(events)
        let plan = try await planner.plan(definition, now: now)
        #expect(
            plan.bestHourSummary
                == "17:00 to 20:00; the app is opened most at 18:00 (from 6 opens in the last 90d). "
                + "1 device has an hour of "
                + "its own. For comparison, own hours apply to half of the audience; "
                + "all other devices get the push at 18:00"
        )
        #expect(plan.waves.map(\.devices).reduce(0, +) == plan.reach.total)
        #expect(plan.reach.total == 5 && plan.quiet?.suppressed == 5)
    }
}
