package import Model

/// Says that the audience of a run is not stored completely.
package enum AudienceNote {
    /// Returns `nil` if the audience is complete, and for a run that ended before it had one.
    package static func text(of run: Run) -> String? {
        text(isFrozen: run.isFrozen, isFinal: run.state.isFinal, audience: run.counts.audience)
    }

    package static func text(of report: ReportResult) -> String? {
        let isFinal = RunState(rawValue: report.state)?.isFinal ?? false
        return text(isFrozen: report.frozen, isFinal: isFinal, audience: report.counts.audience)
    }

    /// Returns the words beside the number of devices: `so far`, or `(part)` if the run ended before it had the others.
    /// `nil` if the audience is complete, and for a run that ended before it had one.
    package static func mark(of run: Run) -> String? {
        mark(isFrozen: run.isFrozen, isFinal: run.state.isFinal, audience: run.counts.audience)
    }

    package static func mark(of run: RunResult) -> String? {
        let isFinal = RunState(rawValue: run.state)?.isFinal ?? false
        return mark(isFrozen: run.frozen, isFinal: isFinal, audience: run.counts.audience)
    }

    private static func mark(isFrozen: Bool, isFinal: Bool, audience: Int) -> String? {
        guard !isFrozen else { return nil }
        guard isFinal else { return "so far" }
        return audience > 0 ? "(part)" : nil
    }

    private static func text(isFrozen: Bool, isFinal: Bool, audience: Int) -> String? {
        guard !isFrozen else { return nil }
        guard audience > 0 else { return isFinal ? nil : "The audience is not stored yet." }
        let devices = audience.counted("device")
        return isFinal
            ? "The audience was not stored completely: \(devices) when the run ended."
            : "The audience is still being stored: \(devices) so far."
    }
}
