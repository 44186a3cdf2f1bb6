import Campaigns
import Foundation
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// What a plan says of a run before it is sent.
@Suite(.timeLimit(.minutes(10))) struct `Planning` {
    private func add(_ scene: PipelineScene, locale: String?, zone: String? = nil, _ numbers: Range<Int>) async throws {
        let records = try numbers.map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.locale = locale
            record.timeZone = zone
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
    }

    private func plan(
        _ scene: PipelineScene, _ definition: RunDefinition, budget: Configuration.SilentBudget? = nil,
        caps: [FrequencyCap] = []
    ) async throws -> Plan {
        try await Planner(store: scene.store, budget: budget, caps: caps).plan(definition, now: scene.clock.now)
    }

    @Test func `each language gets the nearest text, and those without one are named`() async throws {
        let scene = try PipelineScene()
        try await add(scene, locale: "de-AT", 0..<3)
        try await add(scene, locale: "en_US", 3..<8)
        try await add(scene, locale: "fr", 8..<10)
        try await add(scene, locale: nil, 10..<11)
        let plan = try await plan(scene, try scene.definition())
        #expect(plan.blocks.map(\.locale) == ["en", "de"])
        #expect(plan.blocks.map(\.devices) == [8, 3])
        #expect(plan.blocks[0].languages.map(\.tag) == ["en-US", "fr", nil])
        #expect(plan.blocks[0].languages.map(\.isCovered) == [true, false, false])
        #expect(plan.uncovered.map(\.language) == ["fr"])
        #expect(plan.uncovered.map(\.devices) == [2])
        #expect(plan.blocks.map(\.devices).reduce(0, +) == plan.reach.total)
    }

    @Test func `an opt-out list that was emptied is said, and a slip in the values`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let optOuts = AudienceExpression.segment("opt-outs")
        for (name, isEmpty) in [("opt-outs", true), ("staff", false)] {
            let none = AudienceExpression.comparison(.installationID, .equal, .text("nobody"))
            try await scene.store.defineSegment(
                name, source: "", expression: isEmpty ? none : .everyone, now: scene.clock.now)
        }
        let rows: [(AudienceExpression, [String])] = [
            (.all([.everyone, .not(optOuts)]), ["opt-outs"]), (.not(.any([optOuts, .segment("staff")])), ["opt-outs"]),
            (.not(.not(optOuts)), []), (optOuts, []), (.not(.segment("staff")), []),
        ]
        let planning = PlanCampaign(
            store: scene.store, configuration: Configuration(store: "", campaigns: "", templates: ""), topic: "t")
        for (audience, names) in rows {
            let definition = try scene.definition {
                $0.audience = Audience(source: "", expression: audience)
            }
            let planned = try await planning.plan(definition, occurrence: nil, isNow: true, now: scene.clock.now)
            #expect(planned.plan.emptyExclusions == names, "\(audience)")
            #expect(planned.result.emptyExclusions == (names.isEmpty ? nil : names))
        }
    }

    @Test func `variants and holdout add up to the audience`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2000)
        var definition = try scene.definition {
            $0.variants = [.init(name: "a", weight: 3, template: "t"), .init(name: "b", weight: 1, template: "u")]
            $0.holdoutPercent = 10
        }
        var other = definition.template
        other.name = "u"
        other.category = TemplateText(literal: "CATEGORY")
        definition.variantTemplates = ["a": definition.template, "b": other]
        let plan = try await plan(scene, definition)
        let holdout = plan.reach.suppressed[.holdout] ?? 0
        #expect(plan.selected == 2000)
        #expect((100...300).contains(holdout))
        #expect(plan.variants.map(\.devices).reduce(0, +) + holdout == 2000)
        #expect(plan.variants[0].devices > 2 * plan.variants[1].devices)
        #expect(plan.blocks.map { $0.variant } == ["a", "a", "b", "b"])
        #expect(plan.blocks.filter { $0.variant == "a" }.map(\.devices).reduce(0, +) == plan.variants[0].devices)
        #expect(plan.blocks[2].payloadMaxBytes > plan.blocks[0].payloadMaxBytes)
    }

    @Test(
        arguments: [
            (100.0, nil, 1000, 10_000), (100, 10, 1000, 14_500), (100, 10, 550, 10_000), (100, 10, 112, 4_000),
        ] as [(Double, Int?, Int, Int64)])
    func `a pace with its ramp says when the run ends`(rate: Double, ramp: Int?, devices: Int, milliseconds: Int64)
        async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<devices)
        let definition = try scene.definition {
            $0.pace = .init(pushesPerSecond: rate, ramp: ramp.map { .seconds($0) })
            $0.expiresAfter = .milliseconds(milliseconds)
        }
        let wave = try #require(try await plan(scene, definition).waves.first)
        #expect(wave.endsAt == definition.plannedAt + .milliseconds(milliseconds))
        #expect(wave.lateDevices == 0)
        #expect(wave.basis == .pace)
        var short = definition
        short.campaign.expiresAfter = .milliseconds(milliseconds / 2)
        let late = try #require(try await plan(scene, short).waves.first).lateDevices
        #expect(late > 0 && late < devices)
    }

    @Test func `a slower pace that runs share says when the run ends`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let definition = try scene.definition { $0.pace = .init(pushesPerSecond: 50) }
        for (shared, seconds) in [(10.0, 10), (1000, 2)] {
            let planner = Planner(store: scene.store, pace: Campaign.Pace(pushesPerSecond: shared))
            let wave = try #require(try await planner.plan(definition, now: scene.clock.now).waves.first)
            #expect(wave.basis == .pace)
            #expect(wave.endsAt == definition.plannedAt + .seconds(seconds))
        }
    }

    @Test func `without a pace the end is not guessed`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let wave = try #require(try await plan(scene, try scene.definition()).waves.first)
        #expect(wave.endsAt == nil)
        #expect(wave.devices == 3)
    }

    @Test func `background pushes say whose silent budget is used up`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<4)
        let budget = Configuration.SilentBudget(limit: 3, window: .seconds(3600))
        let definition = try scene.definition(.background) { $0.expiresAfter = .seconds(1800) }
        #expect(try await plan(scene, definition, budget: budget).silentBudget?.usedUp == 0)
        for number in 0..<3 {
            let run = try await scene.start(definition, occurrence: "\(number)")
            let end = try await scene.execute(run, ScriptedTransport { _, _ in ScriptedTransport.accepted })
            #expect(end == .finished)
        }
        try await scene.addDevices(4..<5)
        let forecast = try #require(try await plan(scene, definition, budget: budget).silentBudget)
        #expect(forecast.usedUp == 4)
        #expect(!forecast.allCanWait)
        var patient = definition
        patient.campaign.expiresAfter = .seconds(7200)
        #expect(try await plan(scene, patient, budget: budget).silentBudget?.allCanWait == true)
        #expect(try await plan(scene, try scene.definition(), budget: budget).silentBudget == nil)
    }

    @Test func `alerts say who would wait for a slot of a frequency cap, and who would get none`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<4)
        let caps = [
            FrequencyCap(limit: 1, window: .seconds(1800), classes: ["news"]),
            FrequencyCap(limit: 9, window: .seconds(60), classes: ["marketing"]),
        ]
        let definition = try scene.definition { $0.ownClass = "news" }
        let run = try await scene.start(definition, occurrence: "1")
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.pipeline(transport, caps: caps).execute(run, as: "a") { _, _ in } == .finished)
        try await scene.addDevices(4..<5)
        let sent = scene.clock.now
        let capped = try #require(try await plan(scene, definition, caps: caps).capped)
        #expect(capped.caps == [caps[0]] && capped.devices.waiting == 4 && capped.devices.leftOut == 0)
        #expect(capped.devices.lastSlotAt.map { $0 <= sent + .seconds(1800) } == true)
        var short = definition
        short.campaign.expiresAfter = .seconds(60)
        let result = PlanResult(try await plan(scene, short, caps: caps), unset: [])
        let held = try #require(result.frequencyCaps)
        #expect(held.caps == ["1 in 30m per device (news)"] && held.waiting == 0 && held.leftOut == 4)
        #expect(held.lastSlotAt == nil)
        #expect(try await plan(scene, try scene.definition(), caps: caps).capped == nil)
    }

    @Test(arguments: [
        (22 * 60, 8 * 60, 2), (0, 9 * 60, 3), (8 * 60, 22 * 60, 3), (7 * 60 + 59, 8 * 60, 0), (8 * 60, 8 * 60 + 1, 1),
        (600, 600, nil),
    ]) func `quiet hours are those of each device's zone`(from: Int, to: Int, devices: Int?) async throws {
        // 2027-01-15T08:00:00Z: 9 in Berlin, 3 in New York, 17 in Tokyo.
        let scene = try PipelineScene()
        try await add(scene, locale: "de", zone: "Europe/Berlin", 0..<1)
        try await add(scene, locale: "en", zone: "America/New_York", 1..<3)
        try await add(scene, locale: "ja", zone: "Asia/Tokyo", 3..<4)
        try await add(scene, locale: "ja", zone: "Nowhere/AtAll", 4..<5)
        let definition = try scene.definition {
            var schedule = Schedule(trigger: .none)
            schedule.quietHours = .init(fromMinute: from, toMinute: to, policy: .defer)
            schedule.unknownZone = .named("UTC")
            $0.schedule = schedule
            $0.expiresAfter = .seconds(24 * 3600)
        }
        let moment = try #require(ISO8601DateFormatter().date(from: "2027-01-15T08:00:00Z"))
        #expect(definition.plannedAt == Timestamp(moment))
        let quiet = try await plan(scene, definition).quiet
        #expect(quiet?.waiting == devices)
        #expect(quiet.map(\.suppressed) ?? 0 == 0)
        var strict = definition
        strict.campaign.schedule?.quietHours?.policy = .drop
        #expect(try await plan(scene, strict).quiet?.suppressed == devices)
    }

    @Test func `devices without a known zone are named apart from quiet hours`() async throws {
        let scene = try PipelineScene()
        try await add(scene, locale: "en", zone: "Europe/Berlin", 0..<3)
        try await add(scene, locale: "en", zone: "America/New_York", 3..<4)
        try await add(scene, locale: "en", zone: nil, 4..<6)
        let definition = try scene.definition {
            var schedule = Schedule(trigger: .none)
            schedule.quietHours = .init(fromMinute: 0, toMinute: 8 * 60, policy: .drop)
            schedule.unknownZone = .drop
            $0.schedule = schedule
        }
        let plan = try await plan(scene, definition)
        #expect(plan.quiet?.suppressed == 1 && plan.quiet?.unknownZone == 2)
        #expect(plan.expected.leftOut == [.quietHours: 1, .unknownZone: 2])
        #expect(plan.expected.devices == 3 && !plan.expected.isUpperBound)
        let result = PlanResult(plan, unset: [])
        #expect(result.quietHours?.leftOut == 1 && result.quietHours?.unknownZone == 2)
        #expect(result.expected == plan.expected)
        let run = try await scene.start(definition)
        _ = try await scene.execute(run, ScriptedTransport { _, _ in ScriptedTransport.accepted })
        let reasons = try await scene.report(run).suppressed.map { ($0.reason, $0.count) }
        #expect(Dictionary(reasons, uniquingKeysWith: +) == ["quiet_hours": 1, "unknown_zone": 2])
    }

    @Test func `the difference names the texts, settings, values and keys that changed`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let first = try scene.definition()
        #expect(try await plan(scene, first).difference == nil)
        let run = try await scene.start(first)
        _ = try await scene.execute(run, ScriptedTransport { _, _ in ScriptedTransport.accepted })
        let same = try #require(try await plan(scene, first).difference)
        #expect(same.texts.isEmpty && same.variables.isEmpty && same.keys.isEmpty)
        #expect((same.reachBefore, same.reachNow) == (10, 10))

        try await scene.addDevices(10..<12)
        var second = first
        second.variables = ["title": "T"]
        second.campaign.maxAttempts = 9
        second.campaign.holdoutPercent = 0
        second.template.custom = [.init("link_url", .boolean(true))]
        second.template.sound = .named(TemplateText(literal: "default"))
        second.template.alert = .localized([
            .init(
                locale: try #require(LocaleTag("en")), title: TemplateText(literal: "New"), subtitle: nil,
                body: TemplateText(literal: "Hi")),
            .init(
                locale: try #require(LocaleTag("fr")), title: nil, subtitle: nil, body: TemplateText(literal: "Salut")),
        ])
        let difference = try #require(try await plan(scene, second).difference)
        #expect((difference.reachBefore, difference.reachNow) == (10, 12))
        let changes = difference.texts.map { "\($0.locale ?? "-") \($0.key ?? "-") \($0.kind.rawValue)" }
        #expect(
            changes == [
                "en title added", "en body changed", "fr - added", "de - removed", "- custom.link_url added",
                "- sound added",
            ])
        #expect(difference.variables == ["title"])
        #expect(difference.keys == ["holdout", "retry"])
    }
}
