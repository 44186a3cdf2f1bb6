import Campaigns
import Model
import Sending
import Testing

/// The name of a plan, and what of it can drift.
@Suite struct `Plan hash` {
    private static func definition() throws -> RunDefinition {
        var campaign = Campaign(name: "c", topic: "com.example.app", pushType: .alert, template: "t")
        campaign.audience = Audience(source: "tag(\"x\")", expression: .tag("x"))
        campaign.variables = ["title": "", "show": "S"]
        campaign.guards.maxReach = 10
        var template = Template(name: "t")
        template.alert = .localized([
            .init(
                locale: try #require(LocaleTag("en")), title: nil, subtitle: nil,
                body: try TemplateText(parsing: "{{title}}"))
        ])
        return RunDefinition(
            campaign: campaign, template: template, variables: ["title": "T", "show": "S"],
            plannedAt: Timestamp(milliseconds: 1))
    }

    private static let digest = String(repeating: "0123456789abcdef", count: 4)

    private static func token(_ definition: RunDefinition, _ reach: Int) throws -> PlanToken {
        try PlanToken(definition, reach: reach, digest: digest)
    }

    @Test func `two plans with the same short hashes have two names, by 64 bits of what is signed`() throws {
        let definition = try Self.definition()
        let planned = try Self.token(definition, 5)
        let other = try PlanToken(definition, reach: 5, digest: Self.digest.replacing("f", with: "e"))
        #expect(planned.description.contains("-0123456789abcdef-5") && planned != other)
        #expect(PlanDrift(from: planned, to: other, definition.campaign)?.parts == [.contents])
    }

    @Test func `the name that an earlier version printed says to look again`() {
        let old = "p1-0a1b2c3d-0a1b2c3d-0a1b2c3d-2000"
        #expect(PlanToken.isOutdated(old) && ApprovePlans.isPlan(old))
        #expect(PlanToken.fault(old).messages.joined().contains("display the plan again"))
        #expect(!PlanToken.isOutdated("p1-nonsense"))
    }

    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var part: PlanDrift.Part?
        var apply: @Sendable (inout RunDefinition) -> Void
    }

    static let changes: [Change] = [
        Change(testDescription: "another audience", part: .definition) { $0.campaign.audience.expression = .tag("y") },
        Change(testDescription: "another guard", part: .definition) { $0.campaign.guards.maxReach = 11 },
        Change(testDescription: "a pace", part: .definition) { $0.campaign.pace = .init(pushesPerSecond: 1) },
        Change(testDescription: "an audience_sql", part: .definition) { $0.campaign.audienceSQL = "SELECT 1" },
        Change(testDescription: "a variant", part: .definition) {
            $0.campaign.variants = [.init(name: "a", weight: 1, template: "t")]
        },
        Change(testDescription: "a text", part: .template) { $0.template.category = TemplateText(literal: "C") },
        Change(testDescription: "a variant's text", part: .template) { $0.variantTemplates["a"] = Template(name: "u") },
        Change(testDescription: "a value", part: .variables) { $0.variables["title"] = "U" },
        Change(testDescription: "the moment", part: nil) { $0.plannedAt = Timestamp(milliseconds: 2) },
        Change(testDescription: "the spelling of the audience", part: nil) { $0.campaign.audience.source = "tag('x')" },
        Change(testDescription: "a default that the run overrides", part: nil) {
            $0.campaign.variables["title"] = "default"
        },
    ]

    @Test(arguments: changes) func `changes with what would be sent, and names the part`(change: Change) throws {
        let definition = try Self.definition()
        var changed = definition
        change.apply(&changed)
        let planned = try Self.token(definition, 5)
        let drift = PlanDrift(from: planned, to: try Self.token(changed, 5), changed.campaign)
        #expect(drift?.parts == change.part.map { [$0] })
    }

    @Test func `is the same each time, and reads itself again`() throws {
        var definition = try Self.definition()
        for number in 0..<100 { definition.variables["v\(number)"] = "\(number)" }
        let token = try Self.token(definition, 1_234_567)
        definition.variables = Dictionary(uniqueKeysWithValues: definition.variables.shuffled())
        #expect(try Self.token(definition, 1_234_567) == token)
        #expect(PlanToken(token.description) == token)
        #expect(PlanToken(token.description.uppercased().replacing("P2", with: "p2")) == token)
        #expect(token.description.hasSuffix("-1234567"))
    }

    @Test(arguments: [
        "", "p2", "p2-00000000-00000000-00000000", "p2-00000000-00000000-00000000-1",
        "p1-00000000-00000000-00000000-1", "p3-00000000-00000000-00000000-0123456789abcdef-1",
        "p2-0000000-00000000-00000000-0123456789abcdef-1", "p2-0000000g-00000000-00000000-0123456789abcdef-1",
        "p2-00000000-00000000-00000000-0123456789abcde-1", "p2-00000000-00000000-00000000-0123456789abcdeg-1",
        "p2-00000000-00000000-00000000-0123456789abcdef--1", "p2-00000000-00000000-00000000-0123456789abcdef-x",
        "p2-00000000-00000000-00000000-0123456789abcdef-1-2",
    ]) func `is refused when it is none`(text: String) {
        #expect(PlanToken(text) == nil)
    }

    @Test(
        arguments: [
            (nil, 100, 100, false), (nil, 100, 101, true), (nil, 100, 99, true), (20, 100, 120, false),
            (20, 100, 121, true),
            (20, 100, 80, false), (20, 100, 79, true), (20, 100, 1, true), (0, 100, 99, true), (0, 100, 101, true),
            (20, 0, 1, true), (20, 0, 0, false),
        ] as [(Double?, Int, Int, Bool)])
    func `the reach may drift within max_growth, up and down`(limit: Double?, planned: Int, now: Int, drifts: Bool)
        throws
    {
        var definition = try Self.definition()
        definition.campaign.guards.maxGrowthPercent = limit
        let drift = PlanDrift(
            from: try Self.token(definition, planned), to: try Self.token(definition, now),
            definition.campaign)
        #expect(drift?.parts == (drifts ? [.reach(planned: planned, now: now)] : nil))
    }

    @Test func `a drift says everything that changed`() throws {
        let definition = try Self.definition()
        var changed = definition
        changed.template.category = TemplateText(literal: "C")
        changed.variables["title"] = "U"
        let drift = PlanDrift(
            from: try Self.token(definition, 100), to: try Self.token(changed, 150), changed.campaign)
        let words = try #require(drift).description
        #expect(words.contains("the template has changed"))
        #expect(words.contains("the variables"))
        #expect(words.contains("150 devices, 50 % more than the 100 planned"))
        #expect(!words.contains("campaign file"))
    }
}
