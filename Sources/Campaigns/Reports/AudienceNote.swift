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

    private static func text(isFrozen: Bool, isFinal: Bool, audience: Int) -> String? {
        guard !isFrozen else { return nil }
        guard audience > 0 else { return isFinal ? nil : "The audience is not stored yet." }
        let devices = audience.counted("device")
        return isFinal
            ? "The audience was not stored completely: \(devices) when the run ended."
            : "The audience is still being stored: \(devices) so far."
    }
}
