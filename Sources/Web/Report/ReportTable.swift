package import Campaigns
import Model

/// The tables of a run's report, by their names for `report --format csv --table`.
package enum ReportTable: String, CaseIterable, Sendable {
    case summary, reasons, environments, locales, variants, timeline
    case appVersions = "app_versions"
    case zones, countries, waves, stages
    /// What people did with the pushes. Only the heading if the campaign asks for no feedback.
    case feedback, opens
    /// A row for each device. The store provides these rows in batches; the report does not contain them.
    case deliveries

    /// The error for an unknown name.
    package struct Unknown: Error, CustomStringConvertible {
        let name: String

        package var description: String {
            let names = ReportTable.allCases.map(\.rawValue)
            let advice =
                Suggestion.nearest(to: name, among: names).map { "did you mean \"\($0)\"?" }
                ?? "known are \(names.joined(separator: ", "))"
            return "unknown table \"\(name)\"; \(advice)"
        }
    }

    /// Throws ``Unknown`` if there is no table with this name.
    package init(named name: String) throws {
        guard let table = Self(rawValue: name) else { throw Unknown(name: name) }
        self = table
    }

    /// Returns CSV with a heading (RFC 4180). Numbers have no grouping separators, and times are in ISO 8601 and UTC.
    /// Returns an empty text for ``deliveries``.
    package func csv(_ report: ReportResult, _ timeline: TimelineResult) -> String {
        let lines: [[String]] =
            switch self {
            case .summary: Self.summary(report)
            case .reasons: Self.reasons(report)
            case .environments: Self.slices(report.byEnvironment, "environment")
            case .locales: Self.slices(report.byLocale, "locale")
            case .variants: Self.slices(report.byVariant, "variant")
            case .appVersions: Self.slices(report.byAppVersion, "app_version")
            case .zones: Self.slices(report.byZone, "zone")
            case .countries: Self.slices(report.byCountry, "country")
            case .waves: Self.slices(report.byWave, "wave")
            case .stages: Self.slices(report.byStage, "stage")
            case .timeline: Self.timeline(timeline)
            case .feedback: Self.feedback(report.feedback)
            case .opens: Self.opens(report.feedback)
            case .deliveries: []
            }
        return lines.map { CSVLine.text($0) + "\n" }.joined()
    }

    /// Returns the heading and one row, so that scripts can concatenate the summaries of many runs.
    private static func summary(_ report: ReportResult) -> [[String]] {
        let mayHaveArrived = report.mayHaveArrived.map { "\($0)" } ?? ""
        let values: [(String, String)] =
            [
                ("run", "\(report.run)"), ("campaign", report.campaign), ("occurrence", report.occurrence),
                ("state", report.state), ("state_reason", report.stateReason ?? ""), ("test", "\(report.test)"),
                ("created_at", report.createdAt), ("started_at", report.startedAt ?? ""),
                ("finished_at", report.finishedAt ?? ""),
            ] + counts(report.counts)
            + [
                ("attempts", "\(report.attempts)"), ("possible_duplicates", "\(report.possibleDuplicates)"),
                ("devices_gone", "\(report.devicesGone)"), ("devices_suspended", "\(report.devicesSuspended)"),
                ("may_have_arrived", mayHaveArrived),
            ]
        return [values.map(\.0), values.map(\.1)]
    }

    private static func reasons(_ report: ReportResult) -> [[String]] {
        let states = [
            ("rejected", report.rejected), ("unknown", report.unknown), ("suppressed", report.suppressed),
        ]
        return [["state", "status", "reason", "count"]]
            + states.flatMap { state, reasons in
                reasons.map { [state, $0.status.map { "\($0)" } ?? "", $0.reason, "\($0.count)"] }
            }
    }

    private static func slices(_ slices: [ReportResult.Slice], _ word: String) -> [[String]] {
        let heads = [word] + counts(CountsResult(DeliveryCounts())).map(\.0)
        return [heads + ["accepted_share", "accepted_share_from", "accepted_share_to"]]
            + slices.map { slice in
                let share = AcceptedShare(slice.counts)
                let shares = [share.share, share.interval?.lowerBound, share.interval?.upperBound]
                return [slice.name] + counts(slice.counts).map(\.1) + shares.map { $0.map(decimal) ?? "" }
            }
    }

    private static func timeline(_ timeline: TimelineResult) -> [[String]] {
        let heads = [
            "starts_at", "seconds", "accepted", "retried", "rejected", "unknown", "suppressed", "p50_ms", "p99_ms",
            "reopened",
        ]
        return [heads]
            + timeline.slots.map { slot in
                let numbers = [
                    timeline.slotSeconds, slot.accepted, slot.retried, slot.rejected, slot.unknown, slot.suppressed,
                ]
                return [slot.startsAt] + numbers.map { "\($0)" }
                    + [slot.p50Ms, slot.p99Ms].map { $0.map { "\($0)" } ?? "" } + ["\(slot.reopened)"]
            }
    }

    private static func feedback(_ report: FeedbackReport?) -> [[String]] {
        var rows: [(kind: String, name: String, share: FeedbackReport.Share)] = []
        if let report {
            rows = [("opened", "", report.opened), ("dismissed", "", report.dismissed)]
            rows += report.actions.map { ("action", $0.name, $0.share) }
            rows += report.variants.map { ("opened_by_variant", $0.name, $0.share) }
            rows += (report.locales ?? []).map { ("opened_by_locale", $0.name, $0.share) }
            for (kind, goal) in [("goal", report.conversion), ("alerts_off", report.alertsOff)] {
                guard let goal, goal.reportsDeletedAt == nil else { continue }
                rows.append((kind, "treated", goal.treated))
                if let heldOut = goal.heldOut { rows.append((kind, "held_out", heldOut)) }
            }
        }
        return [["figure", "name", "devices", "of", "share", "share_from", "share_to"]]
            + rows.map { row in
                let shares = [row.share.percent, row.share.low, row.share.high]
                return [row.kind, row.name, "\(row.share.devices)", "\(row.share.of)"]
                    + shares.map { $0.map { decimal($0 / 100) } ?? "" }
            }
    }

    private static func opens(_ report: FeedbackReport?) -> [[String]] {
        [["minute", "opened"]] + (report?.curve ?? []).map { ["\($0.minute)", "\($0.opened)"] }
    }

    private static func counts(_ counts: CountsResult) -> [(String, String)] {
        [("audience", "\(counts.audience)")] + SumStates.all(counts).map { ($0.name, "\($0.count)") }
    }

    /// Returns a share with six decimals.
    private static func decimal(_ share: Double) -> String {
        let millionths = Int((share * 1e6).rounded())
        return "\(millionths / 1_000_000).\(String(1_000_000 + millionths % 1_000_000).dropFirst())"
    }
}
