import Campaigns
import Model

/// A plan as a page of text that fits a terminal.
struct PlanText {
    private static let zonesShown = 6

    let plan: Plan
    /// Variables without a value, which the samples show by their names.
    let unset: [String]
    var showsAllSamples = false
    /// Whether the command requests the signatures that the plan needs.
    var isForApproval = false

    var text: String {
        var page = Page()
        addCampaign(&page)
        page.gap()
        addReach(&page)
        addStart(&page)
        page.gap()
        PlanBlocksText(plan: plan).add(to: &page)
        page.gap()
        addSamples(&page)
        page.gap()
        addDifference(&page)
        page.gap()
        addEnd(&page)
        return page.text
    }

    private func addCampaign(_ page: inout Page) {
        let campaign = plan.definition.campaign
        page.row("Campaign", campaign.name + (campaign.variants.isEmpty ? ", template \(campaign.template)" : ""))
        if let sql = campaign.audienceSQL {
            page.row("Audience", sql)
        } else {
            page.row(
                "Audience", campaign.audience.source.isEmpty ? "every device of the topic" : campaign.audience.source)
        }
        page.row(
            "Headers", plan.headers.map { "\($0.name): \($0.value)" + ($0.meaning.isEmpty ? "" : "  (\($0.meaning))") })
    }

    private func addReach(_ page: inout Page) {
        let expected = plan.expected
        let isWhole = plan.selected == expected.devices
        page.row(
            "Reach",
            "\(expected)" + (isWhole ? "" : ", of \(plan.selected.grouped) that the audience selects"),
            expected.devices == 0
                ? ""
                : Console.warned(plan.reach.environmentSummary, on: .results)
                    + (expected.leftOut.isEmpty ? "" : " in the audience"))
        if let emptyReach = plan.emptyReach { page.row("No device", emptyReach.detail) }
        for keyless in plan.keyless { page.row("No key", keyless.description) }
        let reasons = plan.reach.suppressed.merging(expected.leftOut, uniquingKeysWith: +).filter { $0.value > 0 }
            .sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
        page.row("Left out", reasons.map { "\($0.key.rawValue) \($0.value.grouped)" }.joined(separator: ", "))
        page.row(
            "Variants",
            plan.variants.map { "\($0.name) \($0.devices.grouped) (template \($0.template))" }
                .joined(separator: ", "))
        if let feedback = plan.feedbackSummary { page.row("Feedback", feedback) }
        let zones = plan.reach.byZone
        if zones.contains(where: { $0.zone != nil }) {
            page.row(
                "Zones",
                zones.map { "\($0.zone ?? "unknown") \($0.count.grouped)" }.listed(atMost: Self.zonesShown))
        }
    }

    private func addStart(_ page: inout Page) {
        PlanWavesText(plan: plan).add(to: &page)
        for stage in plan.stages { page.row("Stage \(stage.number)", stage.summary) }
        if let silent = plan.silentBudget { page.row("Budget", Self.summary(silent)) }
        if let capped = plan.capped {
            page.row("Caps", Self.summary(capped), capped.caps.map(\.summary).joined(separator: "; "))
        }
        if let hours = plan.definition.campaign.schedule?.quietHours, let quiet = plan.quiet {
            page.row(
                "Quiet hours",
                "\(Self.clock(hours.fromMinute)) to \(Self.clock(hours.toMinute)), \(Self.summary(quiet))")
        }
    }

    private static func summary(_ quiet: QuietForecast) -> String {
        let waiting = quiet.lastEnd.map {
            "\(quiet.waiting.devices) wait for the end of their quiet hours, the last until \($0.shown)"
        }
        let suppressed = quiet.suppressed > 0 ? "\(quiet.suppressed.devices) get nothing" : nil
        let unknown =
            quiet.unknownZone > 0 ? "\(quiet.unknownZone.devices) get nothing, because their zone is unknown" : nil
        let parts = [waiting, suppressed, unknown].compactMap(\.self)
        return parts.isEmpty ? "for no device at the start" : parts.joined(separator: "; ")
    }

    private static func summary(_ silent: SilentForecast) -> String {
        let budget = "\(silent.budget.limit) background pushes in \(WrittenDuration.text(silent.budget.window))"
        if silent.usedUp == 0 { return "every device can get one more (\(budget))" }
        return "\(silent.usedUp.devices) had their \(budget): "
            + (silent.allCanWait
                ? "they wait for their next slot"
                : "they wait for their next slot, or are left out (silent_budget) if the push expires before it")
    }

    private static func summary(_ capped: CappedForecast) -> String {
        let devices = capped.devices
        let waiting = devices.lastSlotAt.map {
            "\(devices.waiting.devices) wait for a slot, the last until \($0.shown)"
        }
        let leftOut = "\(devices.leftOut.devices) are left out (frequency_cap): their slot would come too late"
        let parts = [waiting, devices.leftOut > 0 ? leftOut : nil].compactMap(\.self)
        return parts.isEmpty ? "no device has reached its cap" : parts.joined(separator: "; ")
    }

    private static func clock(_ minute: Int) -> String {
        "\(minute / 60 < 10 ? "0" : "")\(minute / 60):\(minute % 60 < 10 ? "0" : "")\(minute % 60)"
    }

    private func addSamples(_ page: inout Page) {
        var seen: Set<String?> = []
        for block in plan.blocks {
            let isFirst = seen.insert(block.variant).inserted
            guard isFirst || showsAllSamples else { continue }
            page.line("Sample, \(block.variant.map { "variant \($0), " } ?? "")\(block.locale)")
            page.line("  \(block.sample)")
        }
        if !showsAllSamples, plan.blocks.count > seen.count {
            page.line("  (--samples shows all \(plan.blocks.count))")
        }
    }

    private func addDifference(_ page: inout Page) {
        if let difference = plan.difference { DifferenceText(difference: difference).add(to: &page) }
    }

    private func addEnd(_ page: inout Page) {
        for refusal in plan.refusals { page.row("Refused", refusal.description) }
        if let earlier = plan.earlier {
            page.row("Sent before", earlier.facts(now: plan.madeAt), "`fanfare run` needs --again to send it again")
        }
        for name in plan.emptyExclusions {
            page.row(
                "Leaves out", "segment \(name) is empty and selects no device",
                "an empty opt-out list excludes no device")
        }
        if let brake = plan.brake {
            page.row("Brake", brake, "the run would be created paused, and wait for `fanfare resume`")
        }
        let name = plan.definition.campaign.name
        if let approval = plan.approval {
            page.row(
                "Approval", approval,
                isForApproval ? "" : "add --for-approval to this command to request the signatures")
        }
        guard unset.isEmpty else {
            return page.row(
                "To run it", "give " + unset.map { "--var \($0)=..." }.joined(separator: " "),
                "`plan` with them prints a hash; `run --plan` with that hash sends exactly this plan")
        }
        page.row("Plan", plan.token.description)
        if plan.refusals.isEmpty {
            page.row(
                "",
                "`fanfare run \(name) --plan` with this hash sends nothing if texts, variables, rules, segments or the reach "
                    + "have changed")
        }
    }
}

extension Timestamp {
    /// The time to the second, for a person.
    var shown: String { Timestamp(milliseconds: seconds * 1000).iso8601 }
}

extension Int {
    /// The count with its noun: `1,234 devices`, `1 device`.
    var devices: String { counted("device") }
}

/// The times at which a plan's pushes leave, and how long they take.
struct PlanWavesText {
    private static let wavesShown = 12

    let plan: Plan

    func add(to page: inout Page) {
        guard let wall = plan.definition.wall else {
            for wave in plan.waves { page.row("Start", summary(wave), lateness(wave)) }
            return
        }
        page.row("Best hour", plan.bestHourSummary ?? "")
        page.row("Surge", plan.surgeSummary ?? "")
        page.row(
            "Start",
            plan.reach.bestHour == nil
                ? "\(wall) by each device's clock, in \(plan.waves.count.counted("wave")):"
                : "from \(wall) by each device's clock, in \(plan.waves.count.counted("wave")):")
        for wave in plan.waves.prefix(Self.wavesShown) {
            page.row("", "\(wave.startsAt.shown)  \(wave.devices.devices)\(zones(wave))\(end(wave))", lateness(wave))
        }
        let rest = plan.waves.dropFirst(Self.wavesShown)
        if let last = rest.last {
            let devices = rest.reduce(0) { $0 + $1.devices }
            page.row("", "and \(rest.count) more with \(devices.devices), the last at \(last.startsAt.shown)")
        }
    }

    private func summary(_ wave: Wave) -> String {
        let start = (wave.startsAt <= plan.madeAt ? "now, " : "") + wave.startsAt.shown
        guard let rate = wave.rate, wave.endsAt != nil, wave.devices > 0 else {
            return start + ", as fast as APNs accepts it"
        }
        let speed =
            switch wave.basis {
            case .lastRun: "at the last run's \(Int(rate).grouped)/s"
            case .pace, nil:
                "\(Self.rate(rate))/s" + (wave.ramp.map { " after a ramp of \(WrittenDuration.text($0))" } ?? "")
            }
        return "\(start), \(speed)\(end(wave))"
    }

    private func zones(_ wave: Wave) -> String {
        guard let first = wave.zones.first else { return "" }
        return " (\(first)\(wave.zones.count > 1 ? " and \(wave.zones.count - 1) more" : ""))"
    }

    private func end(_ wave: Wave) -> String {
        guard let endsAt = wave.endsAt else { return "" }
        let took = Duration.seconds(Int64((endsAt - wave.startsAt).inSeconds.rounded(.up)))
        return ": ends about \(WrittenDuration.text(took)) later, \((wave.startsAt + took).shown)"
    }

    private func lateness(_ wave: Wave) -> String {
        guard wave.lateDevices > 0, let life = plan.definition.campaign.expiresAfter else { return "" }
        return "\(wave.lateDevices.devices) would be sent later than expires_after "
            + "(\(WrittenDuration.text(life))) and expire unsent"
    }

    private static func rate(_ rate: Double) -> String {
        rate >= 10 || rate == rate.rounded() ? Int(rate).grouped : "\(rate)"
    }
}
