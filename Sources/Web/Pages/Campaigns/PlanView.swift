import Campaigns
import Foundation
import Model

/// A plan for a person: which devices get what, and when. The command line and the API use the same result.
struct PlanView: Sendable {
    struct Fact: Sendable {
        var name: String
        var value: String
        /// The rest of the value as code, such as an audience without a sentence.
        var code: String?
    }

    struct WaveRow: Sendable {
        var start: String
        var devices: String
        var zones: String
        var end: String
    }

    struct TextRow: Sendable {
        var name: String
        var devices: String
        var bytes: String
        var isTooLarge: Bool
        var languages: String
    }

    struct Guard: Sendable {
        var name: String
        /// The label of its box, which says what overriding the guard does.
        var label: String
    }

    /// The form that sends the plan.
    struct Start: Sendable {
        /// The name of the send.
        var occurrence: String
        /// The guards that refuse the plan, and that the sender may override.
        var guards: [Guard]
    }

    private static let wavesShown = 12

    var when: String
    var reach: String
    /// The devices that do not get the push at once because of their clocks, as a sentence. `nil` if there are
    /// none.
    var quiet: String?
    /// The environments in words.
    var sentTo: String
    var isProduction: Bool
    var isEmpty: Bool
    /// The reason why no device gets the push. `nil` if some do, or if the reason is not known.
    var emptyReason: String?
    var facts: [Fact]
    var waves: [WaveRow]
    var moreWaves: String?
    var texts: [TextRow]
    var difference: [Fact]
    var sinceRun: Int64?
    /// The run that has just sent the same content.
    var sentBefore: PlanResult.SentBefore?
    var refusals: [String]
    var hash: String?

    init(_ plan: PlanResult, isNow: Bool) {
        let next =
            plan.localTime.map { "\($0) by each device's clock" } ?? plan.waves.first?.startsAt.shownTimeAndZone
        when = isNow ? "now" : next.map { "at its next time, \($0)" } ?? "now"
        let left = plan.selected - plan.reach
        reach = plan.expected.description
        quiet = plan.quietHours.flatMap { Self.summary($0, of: plan.reach) }
        let isWhole = plan.expected.leftOut.isEmpty
        sentTo = plan.sentTo.isEmpty ? reach : plan.sentTo + (isWhole ? "" : " in the audience")
        isProduction = plan.byEnvironment[PushEnvironment.production.rawValue, default: 0] > 0
        emptyReason = plan.expected.devices > 0 ? nil : plan.nobodyReached?.detail.onPage
        isEmpty = plan.expected.devices == 0
        facts = Self.facts(plan, left: left)
        waves = plan.waves.prefix(Self.wavesShown).map(WaveRow.init)
        let rest = plan.waves.dropFirst(Self.wavesShown)
        moreWaves = rest.last.map { last in
            "and \(rest.count) more with \(rest.reduce(0) { $0 + $1.devices }.grouped) devices, the last at \(last.startsAt.shownTimeAndZone)"
        }
        texts = plan.texts.map { TextRow($0, limit: plan.payloadLimitBytes) }
        difference = plan.sinceLastRun.map { Self.difference($0, now: plan.reach) } ?? []
        sinceRun = plan.sinceLastRun?.run
        sentBefore = plan.sentBefore
        refusals = plan.refusals.map(\.onPage)
        hash = plan.plan
    }

    private static func facts(_ plan: PlanResult, left: Int) -> [Fact] {
        func list(_ counts: [String: Int]) -> String {
            counts.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
                .map { "\($0.key) \($0.value.grouped)" }.joined(separator: ", ")
        }
        var facts = [
            Fact(audience: AudienceSummary(source: plan.audience, sql: plan.audienceSql))
        ]
        if left > 0 { facts.append(Fact(name: "Selected", value: "\(plan.selected.grouped); left out: ")) }
        if left > 0, let last = facts.indices.last { facts[last].value += list(plan.suppressed) }
        facts.append(Fact(name: "Environment", value: list(plan.byEnvironment)))
        facts.append(Fact(name: "No key for", value: list(plan.withoutKey ?? [:])))
        facts.append(Fact(name: "Under another topic", value: list(plan.otherTopics ?? [:])))
        facts.append(
            Fact(
                name: "Variants",
                value: plan.byVariant.map { "\($0.name) \($0.devices.grouped) (template \($0.template))" }
                    .joined(separator: ", ")))
        facts += (plan.stages ?? []).map { Fact(name: "Stage \($0.stage)", value: $0.summary) }
        if let silent = plan.silentBudget, silent.usedUp > 0 {
            facts.append(Fact(name: "Silent budget used up", value: silent.usedUp.grouped))
        }
        if let capped = plan.frequencyCaps, capped.waiting + capped.leftOut > 0 {
            let waiting = capped.lastSlotAt.map { "\(capped.waiting.grouped) wait for a slot, the last until \($0)" }
            let leftOut = capped.leftOut > 0 ? "\(capped.leftOut.grouped) left out" : nil
            let devices = [waiting, leftOut].compactMap(\.self).joined(separator: ", ")
            facts.append(Fact(name: "Frequency caps", value: devices))
        }
        facts.append(
            Fact(
                name: "Volume brake",
                value: plan.volumeBrake.map { "the run would start paused until a person resumes it: it \($0)" }
                    ?? ""))
        facts.append(Fact(name: "Feedback", value: plan.feedback ?? ""))
        facts.append(Fact(name: "Best hour", value: plan.bestHour ?? ""))
        facts.append(Fact(name: "Surge", value: plan.surge ?? ""))
        facts.append(Fact(name: "Approval", value: plan.approval ?? ""))
        facts += (plan.emptyExclusions ?? []).map {
            Fact(name: "Leaves out", value: "segment \($0) is empty and selects no device")
        }
        facts += (plan.lint ?? []).map { Fact(name: "Look again", value: $0) }
        return facts.filter { !$0.value.isEmpty || $0.code != nil }
            .map { Fact(name: $0.name, value: $0.value.withShownTimes, code: $0.code) }
    }

    private static func summary(_ quiet: PlanResult.Quiet, of reach: Int) -> String? {
        let unknown = quiet.unknownZone ?? 0
        let atOnce = reach - quiet.waiting - quiet.leftOut - unknown
        let last = quiet.lastEndAt.map { ", the last at \($0.shownTimeAndZone)" } ?? ""
        let parts = [
            quiet.waiting > 0 ? "\(quiet.waiting.grouped) after their quiet hours\(last)" : nil,
            quiet.leftOut > 0 ? "\(quiet.leftOut.grouped) not at all, because of their quiet hours" : nil,
            unknown > 0 ? "\(unknown.grouped) not at all, because their time zone is unknown" : nil,
        ].compactMap(\.self)
        return parts.isEmpty ? nil : "\(atOnce.grouped) get it immediately; \(parts.joined(separator: "; "))."
    }

    private static func difference(_ difference: PlanResult.Difference, now: Int) -> [Fact] {
        let before = difference.reachBefore
        var groups: [(name: String, keys: [String])] = []
        for change in difference.texts {
            let name = [change.variant.map { "variant \($0)" }, change.locale].compactMap(\.self).joined(separator: " ")
            let key = change.key.map { change.kind == "changed" ? $0 : "\($0) \(change.kind)" } ?? change.kind
            if let last = groups.indices.last, groups[last].name == name {
                groups[last].keys.append(key)
            } else {
                groups.append((name, [key]))
            }
        }
        let texts = groups.map { ($0.name.isEmpty ? "" : "\($0.name): ") + $0.keys.joined(separator: ", ") }
        let reach =
            before == now
            ? "\(now.grouped), as then"
            : "\(now.grouped), \(Percent.growth(from: before, to: now)) than \(before.grouped) then"
        let facts = [
            Fact(name: "Reach", value: reach), Fact(name: "Texts", value: texts.joined(separator: "; ")),
            Fact(name: "Variables", value: difference.variables.joined(separator: ", ")),
            Fact(name: "Campaign", value: difference.campaignKeys.joined(separator: ", ")),
        ].filter { !$0.value.isEmpty }
        return facts.count > 1 ? facts : facts + [Fact(name: "Files", value: "nothing has changed")]
    }
}

extension PlanView.WaveRow {
    fileprivate init(_ wave: PlanResult.WaveEntry) {
        start = wave.startsAt.shownTimeAndZone
        devices = wave.devices.grouped
        let shown = wave.zones.prefix(4).joined(separator: ", ")
        zones = wave.zones.count > 4 ? "\(shown) and \(wave.zones.count - 4) more" : shown
        end = wave.endsAt?.shownTimeAndZone ?? "as fast as APNs accepts it"
        if wave.expired > 0 { end += "; \(wave.expired.grouped) too late (expires_after)" }
    }
}

extension PlanView.TextRow {
    fileprivate init(_ block: PlanResult.Block, limit: Int) {
        name = [block.variant, block.locale].compactMap(\.self).joined(separator: " ")
        devices = block.devices.grouped
        bytes = "\(block.payloadMaxBytes.grouped) of \(limit.grouped)"
        isTooLarge = block.payloadMaxBytes > limit
        let shown = block.languages.prefix(4).map { language in
            "\(language.locale ?? "unknown") \(language.devices.grouped)"
                + (language.covered ? "" : " (no text of its own)")
        }
        languages =
            shown.joined(separator: ", ")
            + (block.languages.count > 4 ? " and \(block.languages.count - 4) more" : "")
    }
}
