import Model

/// Definitions that between them use every key and every case that a stored definition may hold, in the order of the
/// lines of `Fixtures/stored-definitions.jsonl`.
enum StoredDefinitionSamples {
    static var all: [RunDefinition] {
        [everyKey, byAppAndActivity] + audienceValues
            + [Schedule.Trigger.at("2026-12-01T09:00"), .none].map(scheduled) + [.none, .key("k")].map(collapsing)
            + [bare, staged, correcting, flagged, classed, onceForAUser, atBestHours, compared]
    }

    private static let moment = Timestamp(milliseconds: 1_795_251_600_123)
    private static let placeholders = TemplateText(parts: [
        .literal("New: \"/\" "), .variable("title"), .device(.model), .device(.attribute("plan")),
    ])

    private static var staged: RunDefinition {
        var definition = bare
        definition.campaign.stages = [
            Stage(.seeds(.segment("staff"))),
            Stage(.share(1.5), hold: .seconds(900), toleratePercent: 2, needsApproval: true), Stage(.rest),
        ]
        return definition
    }

    private static var compared: RunDefinition {
        var definition = bare
        definition.campaign.stages = [
            Stage(.share(5), hold: .seconds(900), opensAtLeastPercent: 50),
            Stage(.share(20), hold: .seconds(900), decides: VariantRule(by: .conversion, undecided: .first)),
            Stage(.rest),
        ]
        return definition
    }

    private static var correcting: RunDefinition {
        var definition = bare
        definition.campaign.correction = "right"
        definition.correction = Correction(of: 7, .replace)
        return definition
    }

    private static var flagged: RunDefinition {
        var definition = bare
        definition.template.lintAllowed = ["short-text"]
        definition.template.isTest = true
        return definition
    }

    static var everyKey: RunDefinition {
        RunDefinition(
            campaign: campaign, template: localized,
            variantTemplates: ["a": localized, "b": Template(name: "new-podcast-short")],
            variables: ["title": "Émission \u{1F399} \u{1}", "link_url": "https://example.com/a"], plannedAt: moment,
            wall: WallTime(seconds: 1_795_255_200))
    }

    private static var campaign: Campaign {
        var campaign = Campaign(
            name: "new-podcast", topic: "com.example.wendercast", pushType: .alert, template: "new-podcast")
        campaign.priority = .considerate
        campaign.audience = Audience(source: "as written", expression: expression)
        campaign.audienceSQL = "SELECT id FROM device_view"
        campaign.variables = ["title": "", "link_url": "x"]
        campaign.schedule = schedule
        campaign.feed = feed
        campaign.expiresAfter = .milliseconds(14_400_001)
        campaign.collapse = .run
        campaign.pace = Campaign.Pace(pushesPerSecond: 5000.5, ramp: .seconds(120))
        campaign.guards = Campaign.Guards(maxReach: 2_000_000, minReach: 1, maxGrowthPercent: 20)
        campaign.onUnknown = .skip
        campaign.maxAttempts = 7
        campaign.holdoutPercent = 2.5
        campaign.variants = [
            Campaign.Variant(name: "a", weight: 50, template: "new-podcast"),
            Campaign.Variant(name: "b", weight: 30, template: "new-podcast-short"),
        ]
        return campaign
    }

    private static var expression: AudienceExpression {
        .all([
            .any([.segment("fans"), .tag("vip"), .everyone]), .not(.isNull(.userID)),
            .between(.badge, .number(1), .number(9.5)), .within(.lastSeenAt, .seconds(90 * 86_400)),
            .oneOf(.locale, [LocaleTag("de"), LocaleTag("pt-BR")].compactMap { $0.map(AudienceValue.locale) }),
            .comparison(.attribute("plan"), .equal, .text("pro")),
        ])
    }

    private static var schedule: Schedule {
        var schedule = Schedule(trigger: .cron("0 9 * * MON-FRI"))
        schedule.zone = .recipient
        schedule.unknownZone = .named("Europe/Berlin")
        schedule.missedZone = .sendNow
        schedule.lateByMax = .seconds(7200)
        schedule.quietHours = Schedule.QuietHours(fromMinute: 1320, toMinute: 480, policy: .defer)
        return schedule
    }

    private static var feed: FeedTrigger {
        var feed = FeedTrigger(url: "https://example.com/feed.xml")
        feed.variables = ["title": .title, "link_url": .link]
        feed.every = .seconds(300)
        feed.lateByMax = .seconds(3600)
        feed.newMax = 2
        return feed
    }

    private static var localized: Template {
        var template = Template(name: "new-podcast")
        template.defaultLocale = LocaleTag("en")
        template.alert = .localized(
            [LocaleTag("en"), LocaleTag("de")].compactMap(\.self).map {
                Template.LocalizedAlert(
                    locale: $0, title: placeholders, subtitle: TemplateText(literal: "s"), body: placeholders)
            })
        template.sound = .named(TemplateText(literal: "default"))
        template.badge = .increment(1)
        template.category = TemplateText(literal: "NEWS")
        template.threadID = placeholders
        template.targetContentID = placeholders
        template.filterCriteria = placeholders
        template.launchImage = placeholders
        template.mutableContent = true
        template.contentAvailable = true
        template.interruptionLevel = .timeSensitive
        template.relevanceScore = 0.25
        template.custom = everyValue
        template.pushMagic = placeholders
        return template
    }

    private static var everyValue: [TemplateValue.Member] {
        [
            .init("null", .null), .init("yes", .boolean(true)), .init("whole", .integer(-7)),
            .init("real", .number(0.1)),
            .init("text", .text(placeholders)), .init("list", .array([.integer(1), .text(TemplateText(literal: ""))])),
            .init("object", .object([.init("inner", .boolean(false))])),
        ]
    }

    static var byAppAndActivity: RunDefinition {
        var template = Template(name: "live")
        template.alert = .byApp(
            Template.LocKeyAlert(
                locKey: "BODY", locArgs: [placeholders], titleLocKey: "TITLE", titleLocArgs: [placeholders],
                subtitleLocKey: "SUB", subtitleLocArgs: [placeholders]))
        template.sound = .critical(name: TemplateText(literal: "siren"), volume: 0.8)
        template.badge = .number(3)
        template.liveActivity = LiveActivity(event: .start)
        template.liveActivity?.contentState = everyValue
        template.liveActivity?.attributesType = "Match"
        template.liveActivity?.attributes = [.init("home", .text(placeholders))]
        template.liveActivity?.inputPushToken = true
        template.liveActivity?.inputPushChannel = placeholders
        template.liveActivity?.staleDate = .at(moment)
        template.liveActivity?.dismissalDate = .afterSending(.seconds(4 * 3600))
        let campaign = Campaign(name: "live", topic: "com.example", pushType: .liveactivity, template: "live")
        return RunDefinition(campaign: campaign, template: template, variables: [:], plannedAt: moment)
    }

    /// One of each kind of value, field and comparison.
    private static var audienceValues: [RunDefinition] {
        let fields: [AudienceField] = [
            .installationID, .userID, .environment, .locale, .timeZone, .country, .appVersion, .osVersion, .model,
            .alertsAllowed, .registeredAt, .lastSeenAt, .badge, .attribute("plan"),
        ]
        let values: [AudienceValue] =
            [.text("a"), .number(3), .boolean(true), .time(moment)]
            + [AppVersion("4.10")].compactMap { $0.map(AudienceValue.version) }
            + [LocaleTag("zh-Hant-HK")].compactMap { $0.map(AudienceValue.locale) }
        let conditions =
            fields.map { AudienceExpression.comparison($0, .notEqual, .text("x")) }
            + values.map { .comparison(.model, .less, $0) }
            + ComparisonOperator.allCases.map { .comparison(.badge, $0, .number(1)) }
        var definition = bare
        definition.campaign.audience = Audience(source: "", expression: .any(conditions))
        return [definition]
    }

    private static var atBestHours: RunDefinition {
        var definition = scheduled(.cron("0 8 * * *"))
        definition.campaign.schedule?.zone = .recipient
        definition.campaign.schedule?.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        definition.campaign.feedback = CampaignFeedback(arrivalsPercent: 1)
        return definition
    }

    private static func scheduled(_ trigger: Schedule.Trigger) -> RunDefinition {
        var definition = bare
        definition.campaign.schedule = Schedule(trigger: trigger)
        definition.campaign.schedule?.zone = .named("Europe/Berlin")
        definition.campaign.schedule?.unknownZone = .drop
        return definition
    }

    private static func collapsing(_ collapse: Campaign.Collapse) -> RunDefinition {
        var definition = bare
        definition.campaign.collapse = collapse
        return definition
    }

    private static var classed: RunDefinition {
        var definition = bare
        definition.campaign.ownClass = "news"
        return definition
    }

    private static var onceForAUser: RunDefinition {
        var definition = bare
        definition.campaign.dedupe = .user
        return definition
    }

    private static var bare: RunDefinition {
        var campaign = Campaign(name: "bare", topic: "com.example", pushType: .background, template: "t")
        // As it was written then.
        campaign.collapse = .none
        return RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: Timestamp(milliseconds: 0))
    }
}
