package import Campaigns
import Foundation
package import Model

/// A run's report as one self-contained page, for printing and for forwarding. It has no script and sends no request.
///
/// The templates use these properties, which are formatted for display. Templates escape them, except those that are
/// HTML already (``sum``, ``charts``, ``style``).
package struct ReportPage {
    struct Fact: Sendable {
        let name: String
        let value: String
    }

    struct StateRow {
        let name: String
        let count: String
        let share: String
        let reasons: [ReasonRow]
    }

    struct ReasonRow {
        let name: String
        let count: String
        let share: String
    }

    struct SliceTable {
        /// The property by which the run is divided, such as `locale` or `app version`.
        let word: String
        let heads: [String]
        let rows: [SliceRow]
    }

    struct SliceRow {
        let name: String
        let values: [String]
    }

    struct ChartHTML {
        let html: String
    }

    let title: String
    let style: String
    let run: String
    let campaign: String
    let isTest: Bool
    let state: String
    let stateReason: String?
    let facts: [Fact]
    /// What people did. Empty for a campaign without feedback.
    let feedback: [Fact]
    let hasFeedback: Bool
    /// What was sent. `nil` in a report without its run.
    let sent: SentContent?
    /// The people behind the run.
    let people: [PlanView.Fact]
    let sum: String
    let states: [StateRow]
    let audience: String
    let closes: Bool
    /// Says that the audience is not stored completely. `nil` if it is.
    let audienceNote: String?
    let charts: [ChartHTML]
    let slices: [SliceTable]
    let duplicates: String
    let mayHaveArrived: String
    let cleaned: String
    /// A sentence that states whether the outcomes by device are still stored.
    let kept: String
    let madeAt: String
    let version: String

    /// - Parameters:
    ///   - waves: the waves of a run that follows each device's clock. Empty for any other run.
    ///   - definition: what the run sends.
    ///   - people: the people behind the run.
    ///   - prunedAt: the time when the outcomes by device were pruned, or `nil` if they are still stored.
    ///   - version: the version of this program.
    package init(
        _ report: ReportResult, _ timeline: TimelineResult, waves: [WaveBar] = [],
        definition: RunDefinition? = nil, people: RunPeople? = nil, prunedAt: Timestamp?, madeAt: Timestamp,
        version: String
    ) {
        sent = definition.map(SentContent.init)
        self.people = people?.facts ?? []
        title = "\(report.campaign), occurrence \(report.occurrence): report"
        style = Asset.style.text
        run = "\(report.run)"
        campaign = report.campaign
        isTest = report.test
        state = report.state
        stateReason = report.stateReason?.onPage
        facts = Self.facts(report)
        feedback = Self.facts(report.feedback)
        hasFeedback = !feedback.isEmpty
        sum = Chart.closedSum(report.counts).picture
        states = Self.states(report)
        audience = report.counts.audience.grouped
        closes = report.counts.closes
        audienceNote = AudienceNote.text(of: report)
        charts = Self.charts(report, timeline, waves).map { ChartHTML(html: $0.html) }
        slices = [
            ("environment", report.byEnvironment), ("locale", report.byLocale), ("variant", report.byVariant),
            ("stage", report.byStage), ("wave (UTC)", report.byWave), ("app version", report.byAppVersion.byVersion),
            ("country", report.byCountry), ("time zone", report.byZone),
        ].compactMap(Self.table)
        duplicates =
            report.possibleDuplicates > 0
            ? "Possible duplicates: \(report.possibleDuplicates.grouped) were accepted after an attempt whose response "
                + "was lost; APNs may have received them twice."
            : "No possible duplicates: no delivery was accepted after an attempt whose response was lost."
        mayHaveArrived = Self.mayHaveArrived(report.mayHaveArrived)
        cleaned =
            "Devices cleaned: \(report.devicesGone.grouped) with a token that is gone, "
            + "\(report.devicesSuspended.grouped) suspended."
        kept =
            prunedAt.map {
                "The outcomes by device were pruned on \($0.iso8601.prefix(10)); only this summary remains."
            }
            ?? "The outcomes by device are kept: nothing of this run was pruned."
        self.madeAt = madeAt.iso8601.shownTime
        self.version = version
    }

    package func html() throws -> String { try PageTemplate.report.render(self) }

    private static func mayHaveArrived(_ count: Int?) -> String {
        switch count {
        case nil: "May have arrived: unknown, because an earlier version of Fanfare summarized this run."
        case 0?: "No rejected or suppressed delivery had an attempt whose response was lost."
        case let count?:
            "May have arrived: \(count.grouped) ended rejected or suppressed after an attempt whose response was lost; "
                + "APNs may have accepted that attempt."
        }
    }

    /// Returns what people did. Empty for a campaign without feedback.
    static func facts(_ feedback: FeedbackReport?) -> [Fact] {
        (feedback?.rows ?? []).map { Fact(name: $0.name, value: $0.text) }
    }

    private static func facts(_ report: ReportResult) -> [Fact] {
        var facts = [Fact(name: "Occurrence", value: report.occurrence)]
        facts.append(Fact(name: "Created (UTC)", value: report.createdAt.shownTime))
        facts.append(Fact(name: "Started (UTC)", value: report.startedAt?.shownTime ?? "not yet"))
        facts.append(Fact(name: "Finished (UTC)", value: report.finishedAt?.shownTime ?? "not yet"))
        if let took = took(report) { facts.append(Fact(name: "Took", value: took)) }
        facts.append(Fact(name: "Audience", value: report.counts.audience.grouped))
        facts.append(Fact(name: "Attempts", value: report.attempts.grouped))
        return facts
    }

    private static func took(_ report: ReportResult) -> String? {
        guard let start = report.startedAt.flatMap(Timestamp.init(shown:)),
            let end = report.finishedAt.flatMap(Timestamp.init(shown:))
        else { return nil }
        let duration = end - start
        return WrittenDuration.text(duration == .zero ? .milliseconds(1) : duration)
    }

    private static func states(_ report: ReportResult) -> [StateRow] {
        let reasons = [
            "rejected": report.rejected, "unknown": report.unknown, "suppressed": report.suppressed,
        ]
        let whole = report.counts.audience
        return SumStates.all(report.counts).map { name, count in
            StateRow(
                name: name, count: count.grouped, share: count.share(of: whole),
                reasons: (reasons[name] ?? []).map {
                    ReasonRow(
                        name: Chart.name($0), count: $0.count.grouped, share: $0.count.share(of: whole))
                })
        }
    }

    /// Returns the charts from top to bottom. Without a report, returns only the charts of the timeline and the waves.
    static func charts(
        _ report: ReportResult?, _ timeline: TimelineResult, _ waves: [WaveBar] = []
    ) -> [Chart] {
        var charts = [Chart.outcomes(timeline), Chart.latency(timeline)]
        if !waves.isEmpty { charts.append(.waves(waves)) }
        guard let report else { return charts }
        charts.append(.reasons(report.suppressed, of: "suppressed"))
        let rendered = report.byLocale.filter { AcceptedShare($0.counts).sent > 0 }
        if !rendered.isEmpty { charts.append(.shares(rendered, by: "locale")) }
        if !report.byVariant.isEmpty { charts.append(.shares(report.byVariant, by: "variant")) }
        return charts
    }

    /// Returns `nil` if there are no slices.
    private static func table(_ word: String, _ slices: [ReportResult.Slice]) -> SliceTable? {
        guard !slices.isEmpty else { return nil }
        return SliceTable(
            word: word,
            heads: ["audience", "accepted", "rejected", "unknown", "suppressed", "leased", "pending"],
            rows: slices.map { slice in
                SliceRow(
                    name: slice.name,
                    values: ([slice.counts.audience] + SumStates.all(slice.counts).map(\.count)).map(\.grouped))
            })
    }
}

extension CountsResult {
    /// Whether the states add up to the audience.
    var closes: Bool { audience == accepted + rejected + unknown + suppressed + leased + pending }
}
