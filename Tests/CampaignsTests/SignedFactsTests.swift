import CampaignFiles
import Foundation
import Model
import SendingScene
import Store
import Testing

@testable import Campaigns

/// What is signed is what an approver reads: a change that gives a plan another hash changes a row.
@Suite(.timeLimit(.minutes(10))) struct `What an approver reads` {
    struct Change: Sendable, CustomTestStringConvertible {
        /// The key in the campaign file, with the keys around it.
        let key: String
        let make: @Sendable (inout Campaign) -> Void

        init(_ key: String, _ make: @escaping @Sendable (inout Campaign) -> Void) {
            (self.key, self.make) = (key, make)
        }

        var testDescription: String { key }
    }

    /// The keys without a row: the name is the title of the request, and no hash covers the defaults of variables.
    private static let withoutRow: Set<String> = ["campaign", "variables"]

    static let changes = [
        Change("topic") { $0.topic = "com.example.other" },
        Change("push_type") { $0.pushType = .background },
        Change("priority") { $0.priority = .considerate },
        Change("class") { $0.ownClass = "news" },
        Change("template") { $0.template = "other" },
        Change("audience") { $0.audience = Audience(source: "segment(\"fans\")", expression: .segment("fans")) },
        Change("audience") { $0.audience = Audience(source: "", expression: .tag("fans")) },
        Change("audience_sql") { $0.audienceSQL = "SELECT id FROM device_view" },
        Change("dedupe") { $0.dedupe = .user },
        Change("schedule") { $0.schedule = nil },
        Change("schedule.cron") { $0.schedule?.trigger = .cron("0 10 * * *") },
        Change("schedule.at") { $0.schedule?.trigger = .at("2026-12-01T09:00") },
        Change("schedule.zone") { $0.schedule?.zone = .named("Europe/Berlin") },
        Change("schedule.unknown_zone") { $0.schedule?.unknownZone = .drop },
        Change("schedule.unknown_zone") { $0.schedule?.unknownZone = nil },
        Change("schedule.missed_zone") { $0.schedule?.missedZone = .sendNow },
        Change("schedule.late_by_max") { $0.schedule?.lateByMax = .milliseconds(5_415_001) },
        Change("schedule.quiet_hours") { $0.schedule?.quietHours = nil },
        Change("schedule.quiet_hours.from") { $0.schedule?.quietHours?.fromMinute = 1321 },
        Change("schedule.quiet_hours.to") { $0.schedule?.quietHours?.toMinute = 481 },
        Change("schedule.quiet_hours.policy") { $0.schedule?.quietHours?.policy = .drop },
        Change("schedule.best_hour.until") { $0.schedule?.bestHour?.untilMinute = 20 * 60 },
        Change("trigger") { $0.feed = nil },
        Change("trigger.feed") { $0.feed?.url = "https://example.com/other.xml" },
        Change("trigger.every") { $0.feed?.every = .seconds(301) },
        Change("trigger.variables") { $0.feed?.variables["title"] = .summary },
        Change("trigger.late_by_max") { $0.feed?.lateByMax = .seconds(3601) },
        Change("trigger.max_new") { $0.feed?.newMax = 4 },
        Change("expires_after") { $0.expiresAfter = .seconds(5416) },
        Change("collapse") { $0.collapse = .none },
        Change("collapse") { $0.collapse = .key("news") },
        Change("collapse") { $0.collapse = .template },
        Change("pace") { $0.pace = nil },
        Change("pace.rate") { $0.pace?.pushesPerSecond = 50.25 },
        Change("pace.ramp") { $0.pace?.ramp = .seconds(61) },
        Change("guards.max_reach") { $0.guards.maxReach = 101 },
        Change("guards.min_reach") { $0.guards.minReach = 2 },
        Change("guards.max_growth") { $0.guards.maxGrowthPercent = 20.25 },
        Change("on_unknown") { $0.onUnknown = .skip },
        Change("retry.max_attempts") { $0.maxAttempts = 2 },
        Change("holdout") { $0.holdoutPercent = 2.04 },
        Change("variants") { $0.variants = [] },
        Change("variants.weight") { $0.variants[0].weight = 2 },
        Change("variants.template") { $0.variants[0].template = "other" },
        Change("decide.by") { $0.stages?[2].decides?.by = .conversion },
        Change("decide.after") { $0.stages?[2].hold = .seconds(3601) },
        Change("decide.share") { $0.stages?[2].members = .share(20.04) },
        Change("decide.undecided") { $0.stages?[2].decides?.undecided = .first },
        Change("stages") { $0.stages = nil },
        Change("stages.seeds") { $0.stages?[0].members = .seeds(.tag("others")) },
        Change("stages.share") { $0.stages?[1].members = .share(1.01) },
        Change("stages.rest") { $0.stages?[1].members = .rest },
        Change("stages.hold") { $0.stages?[1].hold = .seconds(901) },
        Change("stages.tolerate") { $0.stages?[1].toleratePercent = 2.01 },
        Change("stages.opens_at_least") { $0.stages?[1].opensAtLeastPercent = 50.01 },
        Change("stages.needs") { $0.stages?[3].needsApproval = true },
        Change("correction") { $0.correction = "other" },
        Change("feedback") { $0.feedback = nil },
        Change("feedback.arrivals") { $0.feedback?.arrivalsPercent = 2 },
        Change("conversion") { $0.conversion = nil },
        Change("conversion.event") { $0.conversion?.event = "bought" },
        Change("conversion.within") { $0.conversion?.within = .seconds(86_401) },
    ]

    /// A campaign with a value for each key.
    private static var campaign: Campaign {
        var campaign = Campaign(name: "c", topic: "com.example.app", pushType: .alert, template: "t")
        campaign.expiresAfter = .seconds(5415)
        var schedule = Schedule(trigger: .cron("0 9 * * *"))
        (schedule.zone, schedule.unknownZone) = (.recipient, .named("Europe/Berlin"))
        schedule.lateByMax = .milliseconds(5_415_000)
        schedule.quietHours = .init(fromMinute: 1320, toMinute: 480, policy: .defer)
        schedule.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        campaign.schedule = schedule
        var feed = FeedTrigger(url: "https://example.com/feed.xml")
        (feed.every, feed.lateByMax, feed.variables) = (.seconds(300), .seconds(3600), ["title": .title])
        campaign.feed = feed
        campaign.pace = Campaign.Pace(pushesPerSecond: 50.5, ramp: .seconds(60))
        campaign.guards = Campaign.Guards(maxReach: 100, minReach: 1, maxGrowthPercent: 20)
        campaign.holdoutPercent = 2
        campaign.variants = ["a", "b"].map { Campaign.Variant(name: $0, weight: 1, template: "t") }
        campaign.stages = [
            Stage(.seeds(.tag("staff"))),
            Stage(.share(1), hold: .seconds(900), toleratePercent: 2, opensAtLeastPercent: 50),
            Stage(.share(20), hold: .seconds(3600), decides: VariantRule()), Stage(.rest),
        ]
        campaign.correction = "c"
        campaign.feedback = CampaignFeedback(arrivalsPercent: 1)
        campaign.conversion = Conversion(event: "played", within: .seconds(86_400))
        return campaign
    }

    private static func definition(_ campaign: Campaign) throws -> RunDefinition {
        var template = Template(name: "t")
        template.alert = .localized([
            .init(
                locale: try #require(LocaleTag("en")), title: nil, subtitle: nil, body: TemplateText(literal: "Hello"))
        ])
        return RunDefinition(
            campaign: campaign, template: template, variables: [:],
            plannedAt: Timestamp(milliseconds: 1_800_000_000_000))
    }

    private func rows(_ definition: RunDefinition) -> [String] {
        ApprovalFacts(definition, reach: 5, occurrence: "2027-01-15T08:00").all.map { "\($0): \($1)" }
    }

    @Test(arguments: changes) func `a key that changes the hash changes a row`(change: Change) async throws {
        let scene = try PipelineScene()
        let before = try Self.definition(Self.campaign)
        var after = before
        change.make(&after.campaign)
        func digest(_ definition: RunDefinition) async throws -> String {
            try await PlanDigest(of: definition, occurrence: "2027-01-15T08:00", in: scene.store, nil).text
        }
        #expect(try await digest(before) != digest(after))
        #expect(rows(before) != rows(after))
        // The folder of the store lasts as long as its scene.
        withExtendedLifetime(scene) {}
    }

    @Test func `every key of a campaign file is tried`() throws {
        let schema = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: .campaign).utf8))
        let tried = Set(Self.changes.map(\.key))
        let missing = Self.leaves(schema).subtracting(Self.withoutRow).subtracting(tried)
        #expect(missing.isEmpty, "\(missing.sorted())")
    }

    /// Returns the keys that hold no other keys.
    private static func leaves(_ schema: Any, below path: String = "") -> Set<String> {
        guard let schema = schema as? [String: Any] else { return [] }
        let properties = schema["properties"] as? [String: Any] ?? [:]
        var found = properties.reduce(into: Set<String>()) { found, property in
            let path = path.isEmpty ? property.key : "\(path).\(property.key)"
            found.formUnion(leaves(property.value, below: path))
        }
        let inner =
            ["items", "additionalProperties"].compactMap { schema[$0] as? [String: Any] }
            + (schema["anyOf"] as? [[String: Any]] ?? [])
        for value in inner {
            found.formUnion(leaves(value, below: path).subtracting([path]))
        }
        return found.isEmpty ? [path] : found.subtracting([""])
    }

    @Test func `the exact start, the correction and the fallback language are rows`() throws {
        var definition = try Self.definition(Self.campaign)
        definition.campaign.schedule?.zone = .named("Europe/Berlin")
        let named = rows(definition)
        #expect(named.contains("start: 2027-01-15 09:00 Europe/Berlin, 2027-01-15 08:00:00 UTC"), "\(named)")
        let changes: [(inout RunDefinition) -> Void] = [
            { $0.plannedAt = $0.plannedAt + .seconds(1) }, { $0.wall = WallTime(seconds: 1_800_000_000) },
            { $0.correction = Correction(of: 3, .replace) }, { $0.template.defaultLocale = LocaleTag("de") },
            { $0.template.sound = .named(TemplateText(literal: "loud")) },
        ]
        for change in changes {
            var other = definition
            change(&other)
            #expect(rows(other) != named)
        }
    }

    @Test func `plans that differ only in their quiet hours look different, also beside the last run`() async throws {
        let before = try Self.definition(Self.campaign)
        var after = before
        after.campaign.schedule?.quietHours = nil
        let now = before.plannedAt
        let request = ApprovalRequest(
            definition: after, occurrence: "", plan: "p", digest: "d", reach: 5, needs: 1, authors: [], askedBy: "a",
            askedAt: now)
        let policy = ApprovalPolicy(rule: .init(above: 0, needs: 1), reach: 5, authors: [])
        let run = Run(
            id: 7, campaign: "c", occurrence: "o", definition: before, state: .finished, createdAt: now)
        let detail = ApprovalDetailResult(
            ApprovalResult(ApprovalRecord(request, []), People(), policy, now: now), after,
            segments: SegmentContents(), correction: nil, previous: PreviousRun(run: run, reach: 5),
            findings: ApprovePlans.Findings())
        let fact = try #require(detail.facts.first { $0.name == "quiet hours" })
        #expect(fact.now == nil && fact.differs)
        #expect(
            fact.before
                == "no push from 22:00 to 08:00 by each device's clock; pushes in quiet hours wait until they end")
    }
}
