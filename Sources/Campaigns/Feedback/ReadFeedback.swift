import Foundation
package import Model
package import Store

/// Reads what people did with the pushes of a run.
package struct ReadFeedback: Sendable {
    private static let alertsOffWithin: Duration = .seconds(86_400)
    /// The maximum number of buttons that a report names, those with the most taps. An app has a few; more of them are
    /// a mistake or an attack. The others are merged.
    private static let actionsMax = 20

    private let store: any FeedbackLog

    package init(store: any FeedbackLog) { self.store = store }

    /// Returns `nil` if the campaign asks for no feedback. Reads all deliveries of the run if the campaign has a goal,
    /// a holdout or a best hour.
    ///
    /// - Parameters:
    ///   - accepted: the accepted pushes by group, from the run's report.
    ///   - decided: the decision of the stage that chose the variant of the rest, in words. From then on the chosen
    ///     variant goes to other devices at another time, so its opens are no longer compared.
    ///   - prunedAt: when the outcomes of the run by device were pruned. `nil` while they are kept.
    package func report(
        of run: Run, accepted: AcceptedPushes, decided: String? = nil, prunedAt: Timestamp? = nil, now: Timestamp
    ) async throws -> FeedbackReport? {
        let campaign = run.definition.campaign
        guard !run.isTest, campaign.hasFeedback else { return nil }
        var report = Self.counts(try await store.feedbackCounts(ofRun: run.id), run, accepted)
        if let decided {
            report.variants = []
            report.smallVariants = nil
            report.variantsSummary = decided
        } else {
            let groups = report.variants.map { (name: $0.name, share: Proportion($0.share.devices, of: $0.share.of)) }
            report.variantsSummary =
                VariantComparison(
                    groups, isEarly: Self.isEarly(run, now), leavesOut: report.smallVariants != nil
                ).summary
        }
        let hasHoldout = campaign.holdoutPercent ?? 0 > 0
        let conversion = Self.conversion(run, now, prunedAt)
        let alertsOff =
            hasHoldout
            ? FeedbackLook(
                FeedbackGoal(kind: .alertsOff, within: Self.alertsOffWithin), run, now: now, prunedAt: prunedAt) : nil
        let bestHour = BestHourReport.look(at: run, now: now, prunedAt: prunedAt)
        let goals = [conversion, alertsOff, bestHour].compactMap { $0?.counted }
        let removal = goals.isEmpty ? nil : try await removal(for: run)
        let arms = goals.isEmpty || removal != nil ? [:] : try await store.feedbackArms(ofRun: run.id, goals)
        let compared = { (look: FeedbackLook) in
            GoalReport(
                look, look.counted.flatMap { arms[$0] } ?? FeedbackArms(), hasHoldout: hasHoldout, removal: removal)
        }
        report.conversion = conversion.map(compared)
        report.alertsOff = alertsOff.map(compared)
        report.bestHour = bestHour.map { look in
            BestHourReport(
                look, look.counted.flatMap { arms[$0] } ?? FeedbackArms(), of: campaign, removal: removal)
        }
        return report
    }

    /// Returns the deletion of reports that a comparison of the run needs; `nil` while all of them are kept.
    private func removal(for run: Run) async throws -> FeedbackRemoval? {
        guard let removal = try await store.feedbackRemoval(),
            removal.mayLack(eventsSince: run.startedAt ?? run.createdAt)
        else { return nil }
        return removal
    }

    /// Whether most people may still open the push, so that its opens are looked at several times.
    private static func isEarly(_ run: Run, _ now: Timestamp) -> Bool {
        guard run.state.isFinal, let end = run.finishedAt else { return true }
        return now - end < .seconds(86_400)
    }

    /// Returns the opens of runs, by run, of the pushes that APNs accepted. Runs without opens are left out.
    func opens(of runs: [Run]) async throws -> [Int64: FeedbackReport.Share] {
        let asked = runs.filter { !$0.isTest && $0.definition.campaign.hasFeedback && $0.counts.accepted > 0 }
        guard !asked.isEmpty else { return [:] }
        let totals = try await store.openTotals(ofRuns: asked.map(\.id))
        return asked.reduce(into: [:]) { shares, run in
            guard let opened = totals[run.id] else { return }
            let accepted = run.counts.accepted
            shares[run.id] = FeedbackReport.Share(Proportion(min(opened, accepted), of: accepted))
        }
    }

    /// Returns how many of the devices that were not held out reached the goal of the campaign, or why this is not
    /// known. `nil` without a goal. Reads all deliveries of the run.
    ///
    /// - Parameter prunedAt: reads when the outcomes of the run by device were pruned.
    func goal(
        of run: Run, now: Timestamp, prunedAt: () async throws -> Timestamp? = { nil }
    ) async throws -> RunGoal? {
        guard let look = Self.conversion(run, now) else { return nil }
        if let obstacle = look.obstacle { return .unknown(obstacle) }
        guard let goal = look.counted else { return .unknown(GoalText.notYet(look)) }
        if let removal = try await removal(for: run) { return .unknown(GoalText.deleted(removal)) }
        let treated = try await store.feedbackArms(ofRun: run.id, [goal])[goal]?.treated
        if let treated, treated.devices > 0 {
            return .counted(FeedbackReport.Share(Proportion(treated.reached, of: treated.devices)))
        }
        let pruned = try await prunedAt().flatMap { Self.conversion(run, now, $0)?.obstacle }
        return .unknown(pruned ?? GoalText.noDevices)
    }

    /// Returns the look at the goal of the campaign, or `nil` without a goal.
    private static func conversion(_ run: Run, _ now: Timestamp, _ prunedAt: Timestamp? = nil) -> FeedbackLook? {
        run.definition.campaign.conversion.map {
            FeedbackLook(
                FeedbackGoal(kind: .converted, name: $0.event, within: $0.within), run, now: now, prunedAt: prunedAt)
        }
    }

    private static func counts(
        _ cells: [FeedbackCell], _ run: Run, _ acceptedPushes: AcceptedPushes
    ) -> FeedbackReport {
        let campaign = run.definition.campaign
        let accepted = run.counts.accepted
        // Shares are of accepted pushes, so an event of any other push is in none of them.
        let others = cells.filter { $0.minute == nil && $0.kind == .opened }.reduce(0) { $0 + $1.events }
        let cells = cells.filter { $0.minute != nil }
        let count = { (kind: FeedbackKind) in cells.filter { $0.kind == kind }.reduce(0) { $0 + $1.events } }
        let share = { (devices: Int, total: Int) in FeedbackReport.Share(Proportion(min(devices, total), of: total)) }
        let opens = cells.filter { $0.kind == .opened }
        let byMinute = Dictionary(grouping: opens) { $0.minute ?? 0 }.mapValues { $0.reduce(0) { $0 + $1.events } }
            .sorted { $0.key < $1.key }
        var report = FeedbackReport(
            accepted: accepted, opened: share(count(.opened), accepted), delay: delay(byMinute),
            curve: byMinute.map { FeedbackReport.Point(minute: $0.key, opened: $0.value) },
            dismissed: share(count(.dismissed), accepted),
            actions: actions(cells).map { FeedbackReport.Named(name: $0.name, share: share($0.taps, accepted)) },
            variants: [])
        report.openedNotAccepted = others > 0 ? others : nil
        if let percent = campaign.feedback?.arrivalsPercent, percent > 0 {
            report.arrivals = FeedbackReport.Arrivals(
                askedPercent: percent, reported: count(.arrived),
                asked: Int((Double(accepted) * percent / 100).rounded()))
        }
        let byVariant = campaign.variants.enumerated().map { index, variant in
            let total = acceptedPushes.byVariant[variant.name] ?? 0
            let opened = opens.filter { $0.variant == index }.reduce(0) { $0 + $1.events }
            return (name: variant.name, share: Proportion(min(opened, total), of: total))
        }
        let (shown, hidden) = SmallGroups.split(byVariant)
        report.variants = shown.map { FeedbackReport.Named(name: $0.name, share: FeedbackReport.Share($0.share)) }
        report.smallVariants =
            hidden.isEmpty
            ? nil : hidden.map { FeedbackReport.SmallGroup(name: $0.name, accepted: $0.share.total) }
        report.locales = byLocale(opens, run, acceptedPushes.byLocale)
        return report
    }

    /// Returns the taps by button, the most taps first, and the rest as a last one.
    private static func actions(_ cells: [FeedbackCell]) -> [(name: String, taps: Int)] {
        var taps: [String: Int] = [:]
        for cell in cells where cell.kind == .action { taps[cell.name, default: 0] += cell.events }
        var rest = taps.removeValue(forKey: FeedbackCell.otherName) ?? 0
        let sorted = taps.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        rest += sorted.dropFirst(actionsMax).reduce(0) { $0 + $1.value }
        return sorted.prefix(actionsMax).map { (name: $0.key, taps: $0.value) }
            + (rest > 0 ? [(name: FeedbackCell.otherName, taps: rest)] : [])
    }

    /// Returns the opens by the language of the text, or `nil` for a single text.
    private static func byLocale(
        _ opens: [FeedbackCell], _ run: Run, _ accepted: [String: Int]
    ) -> [FeedbackReport.Named]? {
        guard accepted.count > 1 else { return nil }
        var opened: [String: Int] = [:]
        for cell in opens {
            let locales = run.definition.template(ofVariant: cell.variant).locales
            guard let index = cell.locale, locales.indices.contains(index) else { continue }
            opened[locales[index].description, default: 0] += cell.events
        }
        let groups = accepted.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { name, total in
            (name: name, share: Proportion(min(opened[name] ?? 0, total), of: total))
        }
        return FeedbackReport.Named.merged(groups)
    }

    private static func delay(_ byMinute: [(key: Int, value: Int)]) -> FeedbackReport.Delay? {
        let total = byMinute.reduce(0) { $0 + $1.value }
        guard total > 0 else { return nil }
        // The end of the interval that holds the last of these opens.
        let minute = { (part: Double) in
            var sum = 0
            let start =
                byMinute.first { point in
                    sum += point.value
                    return Double(sum) >= Double(total) * part
                }?.key ?? 0
            return start + FeedbackMinute.width(at: start)
        }
        return FeedbackReport.Delay(half: minute(0.5), most: minute(0.9))
    }
}

/// The accepted pushes of a run by group: the denominators of its shares.
package struct AcceptedPushes {
    var byVariant: [String: Int] = [:]
    /// By the language of the text.
    var byLocale: [String: Int] = [:]

    package init() {}

    init(_ report: ReportResult) {
        let accepted = { (slices: [ReportResult.Slice]) in
            Dictionary(slices.map { ($0.name, $0.counts.accepted) }) { first, _ in first }
        }
        byVariant = accepted(report.byVariant)
        byLocale = accepted(report.byLocale).filter { $0.value > 0 }
    }
}

extension FeedbackReport.Named {
    fileprivate static func merged(_ groups: [(name: String, share: Proportion)]) -> [FeedbackReport.Named] {
        SmallGroups.merged(groups).map { FeedbackReport.Named(name: $0.name, share: FeedbackReport.Share($0.share)) }
    }
}
