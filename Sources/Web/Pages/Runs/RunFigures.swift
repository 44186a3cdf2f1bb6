import Campaigns
import Foundation
import Model

/// The figures of a run's page for which its deliveries must be counted: parts of the page, in HTML.
struct RunFigures: Sendable {
    struct Reason: Sendable {
        var state: String
        var summary: String
        var advice: String?
        /// The status and the code of APNs or Fanfare.
        var reason: String
        var count: String
        var address: String
    }

    struct Slice: Sendable {
        var name: String
        var audience: String
        var accepted: String
        var rejected: String
        var unknown: String
        var suppressed: String
    }

    struct Slices: Sendable {
        var heading: String
        var slices: [Slice]
    }

    struct Details: Sendable {
        var reasons: [Reason]
        var hasReasons: Bool
        var slices: [Slices]
        var attempts: String
        var possibleDuplicates: String
        var hasDuplicates: Bool
        /// `nil` if there are none, or if the number is not known.
        var mayHaveArrived: String?
        var devicesGone: String
        var devicesSuspended: String
    }

    /// The values of the templates.
    struct Page: Sendable {
        /// `nil` while the figures are being counted.
        var details: Details?
        /// The time of the figures, if the run is not over.
        var countedAt: String?
        /// What people did. Empty for a campaign without feedback, or while it is being counted.
        var feedback: [ReportPage.Fact]
        var hasFeedback: Bool
    }

    /// The places of ``pending`` and ``reached`` in the live state.
    static let (pendingPlace, reachedPlace) = ("environments.pending", "environments.reached")

    var reasons: String
    var slices: String
    /// The charts with their tables.
    var charts: String
    /// The devices not sent to yet, such as `PRODUCTION: 18,812 devices, sandbox: 3 devices`.
    var pending: String
    /// The devices that the run has reached, or may have reached.
    var reached: String
    /// The runs that correct this one.
    var correctedBy: [RunPage.Correction]

    init(_ run: Run, _ cases: UseCases) async throws {
        let counted = try await cases.runningReports.report(of: run)
        let timeline = try await cases.timelines.timeline(of: run)
        let waves = try await cases.runningReports.waves(of: run) ?? []
        charts = ReportPage.charts(counted?.figure, timeline, waves.map(WaveBar.init)).map(\.html).joined()
        let found: FeedbackReport? =
            if let counted { try await cases.runningReports.feedback(of: run, in: counted.figure) } else { nil }
        let feedback = ReportPage.facts(found)
        let page = Page(
            details: counted.map { Details($0.figure, run: run.id) },
            // The figures are kept for all visitors, so their time has no visitor's zone.
            countedAt: run.state.isFinal ? nil : counted.map { $0.at.iso8601.timeWithoutZone + " UTC" },
            feedback: feedback, hasFeedback: !feedback.isEmpty)
        reasons = try PageTemplate.runReasons.render(page)
        slices = try PageTemplate.runSlices.render(page)
        pending = counted.map { Self.environments($0.figure) { $0.pending } } ?? ""
        reached = counted.map { Self.environments($0.figure) { $0.accepted + $0.unknown } } ?? ""
        let recalls = Set(counted?.figure.recalledBy ?? [])
        correctedBy = (counted?.figure.correctedBy ?? []).map { .init(run: $0, isRecall: recalls.contains($0)) }
    }

    private static func environments(_ report: ReportResult, _ count: (CountsResult) -> Int) -> String {
        report.byEnvironment.compactMap { slice in
            let devices = count(slice.counts)
            return devices > 0 ? PushEnvironment(rawValue: slice.name)?.summary(devices: devices) : nil
        }.joined(separator: ", ")
    }

    /// Adds the figures to the live state of their run.
    func add(to live: inout LiveState) {
        live.parts.merge(["reasons": reasons, "charts": charts, "slices": slices]) { $1 }
        live.values[Self.pendingPlace] = pending
        live.values[Self.reachedPlace] = reached
    }
}

extension RunFigures.Details {
    fileprivate init(_ report: ReportResult, run: Int64) {
        let reasons = [
            ("rejected", report.rejected), ("unknown", report.unknown), ("suppressed", report.suppressed),
        ].flatMap { state, reasons in reasons.map { RunFigures.Reason($0, state, run) } }
        self.init(
            reasons: reasons, hasReasons: !reasons.isEmpty,
            slices: [
                ("By environment", report.byEnvironment), ("By locale", report.byLocale),
                ("By variant", report.byVariant), ("By stage", report.byStage), ("By wave (UTC)", report.byWave),
                ("By app version", report.byAppVersion.byVersion), ("By country", report.byCountry),
                ("By time zone", report.byZone),
            ].filter { !$1.isEmpty }.map { RunFigures.Slices(heading: $0, slices: $1.map(RunFigures.Slice.init)) },
            attempts: report.attempts.grouped, possibleDuplicates: report.possibleDuplicates.grouped,
            hasDuplicates: report.possibleDuplicates > 0,
            mayHaveArrived: report.mayHaveArrived.flatMap { $0 > 0 ? $0.grouped : nil },
            devicesGone: report.devicesGone.grouped, devicesSuspended: report.devicesSuspended.grouped)
    }
}

extension [ReportResult.Slice] {
    /// The slices of app versions, the newest version first.
    var byVersion: Self { sorted { $0.name.compare($1.name, options: .numeric) == .orderedDescending } }
}

extension RunFigures.Reason {
    fileprivate init(_ reason: ReportResult.Reason, _ state: String, _ run: Int64) {
        let shown = ReasonSummary(code: reason.reason)
        self.init(
            state: state, summary: shown.summary.isEmpty ? "No reason given" : shown.summary, advice: shown.advice,
            reason: Chart.name(reason), count: reason.count.grouped,
            address: "/runs/\(run)/deliveries?state=\(state)&reason=\(reason.reason.inAddress)")
    }
}

extension RunFigures.Slice {
    fileprivate init(_ slice: ReportResult.Slice) {
        let counts = slice.counts
        self.init(
            name: slice.name, audience: counts.audience.grouped, accepted: counts.accepted.grouped,
            rejected: counts.rejected.grouped, unknown: counts.unknown.grouped, suppressed: counts.suppressed.grouped)
    }
}
