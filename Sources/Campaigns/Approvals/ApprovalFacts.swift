import CampaignFiles
import Foundation
import Model
import Rendering
import Store

/// The facts of a plan, as an approver reads them: everything that the hash of a plan covers (``PlanDigest``), so that
/// two plans with different hashes never look the same.
///
/// Some parts have no row of their own:
///
/// - the campaign's name, which is the title of the request
/// - the defaults of variables, which the hash does not cover; the values have rows
/// - the templates' lint exceptions and test marks, which change no push
struct ApprovalFacts {
    static let occurrence = "occurrence"
    static let start = "start"
    /// The facts that every run has for itself, so that a difference from the last run says nothing.
    static let ofOneRun: Set<String> = [occurrence, start]

    private(set) var all: [(String, String)] = []

    init(_ definition: RunDefinition, reach: Int, occurrence: String?) {
        let campaign = definition.campaign
        add("devices", reach.grouped)
        add("app", campaign.topic)
        let source = campaign.audience.source.isEmpty ? campaign.audience.expression.text : campaign.audience.source
        let corrected = definition.correction.map { "the devices that run \($0.run) reached or may have reached" }
        add(ApprovalDetailResult.audience, corrected ?? campaign.audienceSQL ?? source)
        add("correction of", definition.correction.map { "run \($0.run), \($0.kind.rawValue)" })
        add(Self.occurrence, occurrence)
        if occurrence != nil { add(Self.start, Self.start(of: definition)) }
        addSchedule(campaign.schedule)
        addFeed(campaign.feed)
        add("stages", campaign.stages?.map(Self.summary).joined(separator: "; "))
        add("push type", "\(campaign.pushType.rawValue), priority \(campaign.priority.rawValue)")
        add("class", campaign.ownClass)
        add("expires after", campaign.expiresAfter.map(Self.exact))
        for header in Plan.Header.all(definition) where header.name == "apns-collapse-id" {
            add(header.name, header.value)
        }
        add("collapse", Self.summary(campaign.collapse))
        add("pace", campaign.pace.map(Self.summary))
        addGuards(campaign.guards)
        add(
            "unknown response",
            campaign.onUnknown == .resend ? "resend: the push is sent again" : "skip: the push is not sent again")
        add("attempts per device", "\(campaign.maxAttempts)")
        add("holdout", campaign.holdoutPercent.map { "\(Self.exact($0)) %" })
        add(
            "feedback",
            campaign.feedback.map { $0.arrivalsPercent.map { "opens, arrivals of \(Self.exact($0)) %" } ?? "opens" })
        add("best hour", definition.bestHours.map(ClockHour.text))
        add("conversion", campaign.conversion.map { "\($0.event) within \(Self.exact($0.within))" })
        add("dedupe", campaign.dedupe?.rawValue)
        add("template", campaign.template)
        for variant in campaign.variants {
            add("variant \(variant.name)", "weight \(variant.weight), template \(variant.template)")
        }
        add("correction", campaign.correction.map { "template \($0)" })
        addOthers(of: campaign)
        for (name, value) in definition.variables.sorted(by: { $0.key < $1.key }) { add("variable \(name)", value) }
        if campaign.variants.isEmpty { add(definition.template, nil, definition.variables) }
        for variant in campaign.variants {
            let template = definition.variantTemplates[variant.name] ?? definition.template
            add(template, variant.name, definition.variables)
        }
        addPayloads(definition)
    }

    /// - Parameter template: the campaign's prepared correction.
    init(ofCorrection template: Template, _ definition: RunDefinition) {
        add(template, "of the correction", definition.variables)
        var correction = definition
        correction.campaign.variants = []
        (correction.template, correction.variantTemplates) = (template, [:])
        addPayloads(correction, of: "of the correction")
    }

    /// Adds the payloads as APNs receives them, with sound, badge, links and all other keys.
    private mutating func addPayloads(_ definition: RunDefinition, of owner: String? = nil) {
        guard let renderer = try? VariantRenderers(definition) else { return }
        let names =
            definition.campaign.variants.isEmpty ? [owner] : definition.campaign.variants.map { Optional($0.name) }
        for (variant, renderer) in zip(names, renderer.renderers) {
            for index in renderer.prototypes.indices {
                let name = [ApprovalDetailResult.payloadPrefix, variant, renderer.localeName(index)].compactMap(\.self)
                    .joined(separator: " ")
                add(name, renderer.sample(index))
            }
        }
    }

    private mutating func add(_ name: String, _ value: String?) {
        guard let value, !value.isEmpty else { return }
        all.append((name, value))
    }

    private mutating func add(_ template: Template, _ variant: String?, _ variables: [String: String]) {
        let owner = [variant].compactMap(\.self)
        add((["default language"] + owner).joined(separator: " "), template.defaultLocale?.description)
        guard case .localized(let alerts) = template.alert else { return }
        for alert in alerts {
            let name = (owner + [alert.locale.description]).joined(separator: " ")
            for (part, text) in [("title", alert.title), ("subtitle", alert.subtitle), ("body", alert.body)] {
                add("text \(name) \(part)", text?.filled(variables))
            }
        }
    }
}

/// The rules of a campaign.
extension ApprovalFacts {
    /// The keys of the stored campaign and schedule that have a row in words.
    private static let described: Set<String> = [
        "name", "topic", "push_type", "priority", "class", "template", "audience", "audience_sql", "dedupe",
        "variables", "schedule", "feed", "expires_after", "collapse", "pace", "guards", "on_unknown", "max_attempts",
        "holdout_percent", "variants", "stages", "correction", "feedback", "conversion",
    ]
    private static let describedOfSchedule: Set<String> = [
        "trigger", "zone", "unknown_zone", "missed_zone", "late_by_max", "quiet_hours", "best_hour",
    ]

    /// Adds a row for each key without one in words, so that a new key cannot be signed unseen.
    private mutating func addOthers(of campaign: Campaign) {
        addOthers(of: campaign, but: Self.described)
        if let schedule = campaign.schedule { addOthers(of: schedule, but: Self.describedOfSchedule) }
    }

    private mutating func addOthers(of value: some Encodable, but described: Set<String>) {
        guard let values = try? WrittenKeys.values(of: value) else { return }
        for key in values.keys.sorted() where !described.contains(key) {
            add(key.replacing("_", with: " "), values[key].map { String(decoding: $0, as: UTF8.self) })
        }
    }

    private mutating func addSchedule(_ schedule: Schedule?) {
        guard let schedule else { return }
        switch schedule.trigger {
        case .at(let time): add("schedule", time.replacing("T", with: " "))
        case .cron(let cron): add("schedule", cron)
        case .none: break
        }
        switch schedule.zone {
        case .recipient: add("clock", "each device's own")
        case .named(let name): add("clock", name)
        case nil: break
        }
        switch schedule.unknownZone {
        case .named(let name): add("devices without a time zone", name)
        case .drop: add("devices without a time zone", "no push")
        case nil: break
        }
        if schedule.zone == .recipient || schedule.missedZone != .nextDay {
            add("devices whose time has passed", Self.summary(schedule.missedZone))
        }
        add("longest delay", schedule.lateByMax.map(Self.exact))
        add("quiet hours", schedule.quietHours.map(Self.summary))
        add("best hour until", schedule.bestHour.map { Self.clock($0.untilMinute) })
    }

    private mutating func addFeed(_ feed: FeedTrigger?) {
        guard let feed else { return }
        add("feed", "\(feed.url), every \(Self.exact(feed.every))")
        add(
            "feed variables",
            feed.variables.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.rawValue)" }
                .joined(separator: ", "))
        add("feed items", "at most \(feed.newMax) new ones, no older than \(Self.exact(feed.lateByMax))")
    }

    private mutating func addGuards(_ guards: Campaign.Guards) {
        add("most devices", guards.maxReach?.grouped)
        add("fewest devices", guards.minReach?.grouped)
        add("most growth", guards.maxGrowthPercent.map { "\(Self.exact($0)) % since the last run" })
    }

    /// Returns text such as `2026-12-01 09:00 Europe/Berlin, 2026-12-01 08:00:00 UTC`.
    private static func start(of definition: RunDefinition) -> String {
        let moment = definition.plannedAt.iso8601
        let utc = moment.replacing("T", with: " ").replacing("Z", with: " UTC")
        if let wall = definition.wall {
            let local = wall.description.replacing("T", with: " ")
            return "\(local) by each device's clock, the first device at \(utc)"
        }
        guard case .named(let name)? = definition.campaign.schedule?.zone, let zone = TimeZone(identifier: name) else {
            return utc
        }
        return "\(zone.wall(at: definition.plannedAt).description.replacing("T", with: " ")) \(name), \(utc)"
    }

    /// A stage, with what it does by itself.
    private static func summary(_ stage: Stage) -> String {
        let hold = exact(stage.hold ?? .zero)
        let members =
            switch stage.members {
            case .seeds(let seeds): "seeds (\(seeds.text))"
            case .share(let percent): "\(exact(percent)) %"
            case .rest: "the rest"
            }
        let opens = stage.opensAtLeastPercent.map {
            "pauses after \(hold) if opens are below \(exact($0)) % of usual"
        }
        let decides = stage.decides.map {
            "chooses the variant for the rest after \(hold), by \($0.by.rawValue), if unclear: \($0.undecided.rawValue)"
        }
        return [
            members, stage.needsApproval ? "needs approval" : nil,
            stage.toleratePercent.map { "tolerates \(exact($0)) % rejections" },
            stage.hold.map { "holds \(exact($0))" }, opens, decides,
        ].compactMap(\.self).joined(separator: ", ")
    }

    private static func summary(_ collapse: Campaign.Collapse) -> String {
        switch collapse {
        case .run: "run: pushes of one run replace each other"
        case .none: "none: no push replaces another"
        case .key(let key): "\(key): newer pushes with this word replace older ones"
        case .template: "one word per app and template, without an apns-collapse-id"
        }
    }

    private static func summary(_ pace: Campaign.Pace) -> String {
        "at most \(exact(pace.pushesPerSecond))/s" + (pace.ramp.map { ", after a ramp of \(exact($0))" } ?? "")
    }

    private static func summary(_ missed: Schedule.MissedZone) -> String {
        switch missed {
        case .sendNow: "send_now: they get the push at the start"
        case .nextDay: "next_day: they get the push on the next day"
        case .drop: "drop: no push"
        }
    }

    private static func summary(_ hours: Schedule.QuietHours) -> String {
        "no push from \(clock(hours.fromMinute)) to \(clock(hours.toMinute)) by each device's clock; pushes in quiet hours "
            + (hours.policy == .defer ? "wait until they end" : "are not sent")
    }

    private static func clock(_ minute: Int) -> String {
        "\(ClockHour.text(minute / 60).prefix(3))\(minute % 60 < 10 ? "0" : "")\(minute % 60)"
    }

    /// Returns the duration to the millisecond, because a rounded one would hide a difference.
    private static func exact(_ duration: Duration) -> String {
        let text = WrittenDuration.text(duration)
        return WrittenDuration.parse(text) == duration ? text : "\(exact(duration.inSeconds))s"
    }

    private static func exact(_ number: Double) -> String {
        let text = "\(number)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension TemplateText {
    /// Returns the text with the given variables filled in. Placeholders for device fields stay as they are written.
    fileprivate func filled(_ variables: [String: String]) -> String {
        parts.map { part in
            switch part {
            case .literal(let text): text
            case .variable(let name): variables[name] ?? "{{\(name)}}"
            case .device(let field): "{{device.\(field)}}"
            }
        }.joined()
    }
}
