import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Sending
import Store

/// A report as a page of text that fits a terminal.
struct ReportText {
    let report: Report
    var feedback: FeedbackReport?

    var text: String {
        ([heading, "", account] + sections).joined(separator: "\n")
    }

    private var heading: String {
        let run = report.run
        var lines = [
            "Run \(run.id): \(run.campaign), occurrence \(run.occurrence)"
                + (run.isTest ? " (a test, to one device)" : "")
        ]
        lines.append("State      \(RunStatus.state(run))")
        if let broken = report.emergencyOverride { lines.append("Unsigned   \(broken.summary)") }
        if let correction = run.definition.correction {
            lines.append("Corrects   run \(correction.run) (\(correction.kind.rawValue))")
        }
        func add(_ label: String, _ runs: [Int64]) {
            if !runs.isEmpty { lines.append("\(label)by run \(runs.map { "\($0)" }.joined(separator: ", "))") }
        }
        add("Corrected  ", report.correctedBy.filter { !report.recalledBy.contains($0) })
        add("Recalled   ", report.recalledBy)
        if let startedAt = run.startedAt {
            let end = run.finishedAt.map { " to \($0.iso8601) (\(Self.elapsed($0 - startedAt)))" } ?? ""
            lines.append("Time       \(startedAt.iso8601)\(end)")
        }
        lines.append("Attempts   \(report.attempts.grouped)")
        return lines.joined(separator: "\n")
    }

    private static func elapsed(_ duration: Duration) -> String {
        WrittenDuration.text(duration == .zero ? .milliseconds(1) : duration)
    }

    private var account: String {
        let counts = report.counts
        let rows = [
            ("audience", counts.audience), ("accepted", counts.accepted), ("rejected", counts.rejected),
            ("unknown", counts.unknown), ("suppressed", counts.suppressed), ("pending", counts.pending),
            ("leased", counts.leased),
        ]
        let mark = AudienceNote.mark(of: report.run)
        let lines = rows.map { name, count in
            let share = (name == "audience" ? mark : nil) ?? count.share(of: counts.audience)
            return name.padded(to: 11) + count.grouped.rightAligned(to: 12) + "  " + share.rightAligned(to: 8)
        }
        return (lines + [AudienceNote.text(of: report.run)].compactMap(\.self)).joined(separator: "\n")
    }

    private var sections: [String] {
        var sections: [String] = []
        for (name, reasons) in [
            ("Rejected", report.rejected), ("Unknown", report.unknown), ("Suppressed", report.suppressed),
        ] where !reasons.isEmpty {
            sections += ["", "\(name) by reason"] + reasons.map(Self.line)
        }
        for (name, slices) in [
            ("By environment", report.byEnvironment), ("By locale", report.byLocale), ("By variant", report.byVariant),
            ("By stage", report.byStage), ("By wave", report.byWave), ("By app version", report.byAppVersion),
            ("By country", report.byCountry), ("By time zone", report.byZone),
        ]
        where !slices.isEmpty && slices.map(\.name) != ["not known"] {
            let shown = Self.shown(slices)
            let width = max(14, shown.map(\.name.count).max() ?? 0)
            sections += ["", Self.sliceHeading(name, width)] + shown.map { Self.line($0, width) }
        }
        if let feedback {
            let rows = feedback.rows
            let width = (rows.map(\.name.count).max() ?? 0) + 2
            sections += ["", "What people did"] + rows.map { "  \($0.name.padded(to: width))\($0.text)" }
        }
        if let stages = StageResult.all(report.run, report.stages) {
            sections += ["", "Stages"] + stages.map { "  \($0.stage). \($0.members): \($0.summary)" }
        }
        if report.possibleDuplicates > 0 {
            sections += [
                "", "Possible duplicates: \(report.possibleDuplicates.grouped) accepted after a lost response",
            ]
        }
        if let count = report.mayHaveArrived, count > 0 {
            sections += [
                "", "May have arrived: \(count.grouped) that ended rejected or suppressed after a lost response",
            ]
        }
        if report.devicesGone + report.devicesSuspended > 0 {
            sections += [
                "",
                "Devices cleaned: \(report.devicesGone.grouped) gone, \(report.devicesSuspended.grouped) suspended",
            ]
        }
        return sections
    }

    private static func line(_ reason: Report.Reason) -> String {
        let status = reason.status > 0 ? "\(reason.status) " : ""
        return "  " + (status + reason.reason).padded(to: 32) + reason.count.grouped.rightAligned(to: 12)
    }

    /// Returns the rows of a table, at most ``slicesMax``. The last row then holds the sum of the omitted rows.
    private static func shown(_ slices: [Report.Slice]) -> [Report.Slice] {
        guard slices.count > slicesMax else { return slices }
        let rest = slices[(slicesMax - 1)...]
        let sum = rest.map(\.counts).reduce(DeliveryCounts(), +)
        return slices.prefix(slicesMax - 1) + [Report.Slice(name: "\(rest.count) more", counts: sum)]
    }

    private static let slicesMax = 20

    /// - Parameter width: the width of the longest name in the table.
    private static func sliceHeading(_ name: String, _ width: Int) -> String {
        name.padded(to: width + 2)
            + ["audience", "accepted", "rejected", "unknown", "suppressed"].map { $0.rightAligned(to: 12) }.joined()
    }

    private static func line(_ slice: Report.Slice, _ width: Int) -> String {
        let counts = slice.counts
        return "  " + slice.name.padded(to: width)
            + [counts.audience, counts.accepted, counts.rejected, counts.unknown, counts.suppressed]
            .map { $0.grouped.rightAligned(to: 12) }.joined()
    }
}

/// The counts of a run, counted again from its deliveries.
struct SumProof {
    let run: Run
    let check: SumCheck

    var text: String {
        let counts = check.recounted
        let parts = [
            ("pending", counts.pending), ("leased", counts.leased), ("accepted", counts.accepted),
            ("rejected", counts.rejected), ("unknown", counts.unknown), ("suppressed", counts.suppressed),
        ]
        let sum = parts.map { "\($0.1.grouped) \($0.0)" }.joined(separator: " + ")
        let verdict = check.closes ? "The counts balance" : "THE COUNTS DO NOT BALANCE"
        let compared =
            check.prunedAt.map {
                ": the counts and the summary were compared; no delivery was counted, because they were pruned on "
                    + $0.iso8601.prefix(10)
            } ?? ""
        return
            (["Run \(run.id), \(run.campaign): \(counts.audience.grouped) audience = \(sum)"]
            + check.problems.map { "  problem: \($0)" } + ["\(verdict)\(compared)."]
            + [AudienceNote.text(of: run)].compactMap(\.self))
            .joined(separator: "\n")
    }
}

/// The results of `run --due`, run by run.
enum DueText {
    static func text(_ ended: [DueRun]) -> String {
        guard !ended.isEmpty else { return "nothing is due" }
        return ended.map { entry in
            let (run, counts) = (entry.run, entry.run.counts)
            var text = RunStatus.state(run)
            if case .waiting(let moment) = entry.end { text += ", the rest is due at \(moment.shown)" }
            return "run \(run.id): \(run.campaign), occurrence \(run.occurrence): \(text); "
                + "\(counts.accepted.grouped) of \(counts.audience.grouped) accepted"
        }.joined(separator: "\n")
    }
}
