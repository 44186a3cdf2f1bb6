@testable import Campaigns
import Daemon
import Model
import PostgresStore
import Store
import TestSupport
import Testing

/// The daemon of a store on a server sends the values of one start.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct StartValueTests {
    @Test func `the values of a start are sent whole, and the last ones before its time count`() async throws {
        let cluster = try await PostgresCluster.shared
        let store = try await PostgresDatabase.open(
            url: cluster.url(try await cluster.makeDatabase()), time: .caller)
        defer { try? store.close() }
        var campaign = Campaign(name: "weekly", topic: "com.example.app", pushType: .background, template: "t")
        campaign.schedule = Schedule(trigger: .cron("0 9 * * *"))
        campaign.schedule?.zone = .named("UTC")
        campaign.variables = ["show": "", "title": ""]
        var template = Template(name: "t")
        template.custom = [.init("about", .text(try TemplateText(parsing: "{{show}}: {{title}}")))]
        let source = CampaignSource(
            campaign: campaign, template: template, variantTemplates: [:], warnings: [], hashes: [:])
        let key = "2026-12-01T09:00"
        let start = Timestamp(seconds: try #require(WallTime(key)).seconds)
        let giving = GiveValues(store: store)
        let give = { @Sendable (text: String, now: Timestamp) in
            try await giving.give(["show": text, "title": text], to: key, of: source, by: "anna", now: now)
        }
        _ = try await give("first", start - .seconds(1))
        let ready = ReadyCampaign(campaign: campaign, template: template, changedAt: start - .seconds(86_400))
        let occurrence = try #require(ready.timetable?.occurrence(named: key))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do { for number in 1... { _ = try await give("\(number)", start - .milliseconds(1)) } } catch is Failure
                {}
            }
            _ = try await DueRuns(store: store, actor: "daemon")
                .make([Agenda.Due(campaign: ready, occurrence: occurrence)], now: start)
            try await group.waitForAll()
        }
        let sent = try #require(try await store.run(campaign: "weekly", occurrence: key)).definition.variables
        #expect(sent["show"] == sent["title"] && sent["show"]?.isEmpty == false, "\(sent)")
        await #expect(throws: Failure.self) { try await give("late", start) }
    }
}
