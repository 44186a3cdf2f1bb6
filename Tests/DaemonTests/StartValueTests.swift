@testable import Campaigns
import Daemon
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// The values that a person gave for one start of a schedule, when the daemon starts it.
@Suite(.timeLimit(.minutes(10))) struct `Values of one start` {
    private static let nine = "2026-12-01T09:00"
    private static let rules = ApprovalRules(rules: [.init(above: 0, needs: 1)])

    private let scene: PipelineScene
    private let giving: GiveValues
    private let start: Timestamp

    init() async throws {
        scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        giving = GiveValues(store: scene.store)
        start = Timestamp(seconds: try #require(WallTime(Self.nine)).seconds)
    }

    /// A campaign at nine o'clock each day, whose title has no default.
    private static func source(
        _ variables: [String: String] = ["show": "WenderCast", "title": ""]
    ) throws -> CampaignSource {
        var campaign = Campaign(name: "weekly", topic: PipelineScene.topic, pushType: .background, template: "t")
        campaign.schedule = Schedule(trigger: .cron("0 9 * * *"))
        campaign.schedule?.zone = .named("UTC")
        campaign.variables = variables
        var template = Template(name: "t")
        template.custom = [.init("about", .text(try TemplateText(parsing: "{{show}}: {{title}}")))]
        return CampaignSource(campaign: campaign, template: template, variantTemplates: [:], warnings: [], hashes: [:])
    }

    private func due(_ source: CampaignSource) throws -> Agenda.Due {
        let ready = ReadyCampaign(
            campaign: source.campaign, template: source.template, changedAt: start - .seconds(86_400))
        return Agenda.Due(
            campaign: ready, occurrence: try #require(ready.timetable?.occurrence(named: Self.nine)))
    }

    private func make(
        _ source: CampaignSource, at now: Timestamp, _ rules: ApprovalRules? = nil
    ) async throws -> DueRuns.Made? {
        try await DueRuns(store: scene.store, actor: "daemon", approvals: rules).make([due(source)], now: now).first?
            .made
    }

    @Test func `are sent by their start and by no other, and the start keeps them`() async throws {
        let source = try Self.source()
        let eve = start - .seconds(86_400)
        for (title, moment) in [("The Reef", eve), ("The Wreck", start - .milliseconds(1))] {
            let given = try await giving.give(["title": title], to: Self.nine, of: source, by: "anna", now: moment)
            #expect(given.missing == [] && given.definition.variables == ["show": "WenderCast", "title": title])
        }
        // The time has come: what is stored counts, before and after the run is made.
        for _ in 0..<2 {
            await #expect(throws: Failure.self) {
                try await giving.give(["title": "The Cave"], to: Self.nine, of: source, by: "anna", now: start)
            }
            await #expect(throws: Failure.self) {
                try await giving.remove(from: Self.nine, of: source, by: "anna", now: start)
            }
            _ = try await make(source, at: start)
        }
        let run = try #require(try await scene.store.run(campaign: "weekly", occurrence: Self.nine))
        #expect(run.state == .scheduled && run.definition.variables == ["show": "WenderCast", "title": "The Wreck"])
        let next = try await giving.start(source, named: nil, now: start)
        #expect(next.occurrence.key == "2026-12-02T09:00" && next.given == nil && next.missing == ["title"])
    }

    @Test func `are needed, and a start without them fails with the reason`() async throws {
        let source = try Self.source()
        await #expect(throws: Failure.self) {
            try await giving.give(["show": "Other"], to: Self.nine, of: source, by: "anna", now: start - .seconds(9))
        }
        guard case .ended(let run)? = try await make(source, at: start) else { throw Failure(.notFound, "no run") }
        #expect(run.state == .failed && run.stateReason?.contains("title") == true)
    }

    @Test func `hold for their start when the files change, with the defaults of that day`() async throws {
        let old = try Self.source(["show": "WenderCast", "title": "", "gone": "x"])
        let values = ["show": "WenderCast", "title": "The Reef", "gone": "y"]
        _ = try await giving.give(values, to: Self.nine, of: old, by: "anna", now: start - .seconds(9))
        let new = try Self.source(["show": "NewCast", "title": "Default"])
        #expect(try await giving.start(new, named: Self.nine, now: start - .seconds(9)).missing == [])
        let run = try #require(try await make(new, at: start)?.run)
        #expect(run.definition.variables == ["show": "NewCast", "title": "The Reef"])
    }

    @Test func `are sent whole when they are changed at the moment of the start`() async throws {
        let source = try Self.source(["show": "", "title": ""])
        func give(_ number: Int) async throws {
            let values = ["show": "\(number)", "title": "\(number)"]
            _ = try await giving.give(values, to: Self.nine, of: source, by: "anna", now: start - .milliseconds(1))
        }
        try await give(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // Ends with the run: a start that has one takes no values.
                do { for number in 1... { try await give(number) } } catch is Failure {}
            }
            _ = try await make(source, at: start)
            try await group.waitForAll()
        }
        let sent = try #require(try await scene.store.run(campaign: "weekly", occurrence: Self.nine)).definition
            .variables
        #expect(sent["show"] == sent["title"] && sent["show"]?.isEmpty == false, "\(sent)")
    }

    @Test func `are part of what is signed, and their giver does not sign`() async throws {
        let source = try Self.source()
        let plans = ApprovePlans(store: scene.store, rules: Self.rules)
        func give(_ title: String) async throws {
            _ = try await giving.give(
                ["title": title], to: Self.nine, of: source, by: "carl", now: start - .seconds(60))
        }
        func ask() async throws -> ApprovalResult {
            let given = try await giving.start(source, named: Self.nine, now: start - .seconds(50))
            return try #require(
                try await plans.ask(
                    given.definition, occurrence: Self.nine, reach: 3, by: "dora", now: start - .seconds(50)))
        }
        try await give("The Reef")
        let first = try await ask()
        #expect(try await plans.sign(first.plan, reason: nil, by: "anna", now: start - .seconds(40)).missing == 0)
        try await give("The Wreck")
        guard case .waits? = try await make(source, at: start, Self.rules) else {
            Issue.record("values that are not signed were sent")
            return
        }
        let waiting = try #require(try await plans.list(includingPast: false, now: start).approvals.first)
        #expect(waiting.digest != first.digest)
        await #expect(throws: Failure.self) {
            try await plans.sign(waiting.plan, reason: nil, by: "carl", now: start + .seconds(1))
        }
        _ = try await plans.sign(waiting.plan, reason: nil, by: "anna", now: start + .seconds(1))
        let run = try #require(try await make(source, at: start + .seconds(2), Self.rules)?.run)
        #expect(run.definition.variables["title"] == "The Wreck")
    }
}
