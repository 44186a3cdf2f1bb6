package import Model

/// Whether a run that finished did what it was started for: devices accepted it, and most of what was sent got an
/// acceptance as its response.
package struct RunSuccess: Sendable {
    private let limits: Configuration.SuccessLimits

    package init(_ limits: Configuration.SuccessLimits) { self.limits = limits }

    /// Why the run is no success, for a person; `nil` for a success.
    ///
    /// A run whose deliveries a newer push replaced, or that a person cancelled, was not meant to be sent any more.
    ///
    /// - Parameters:
    ///   - suppressed: the deliveries that were suppressed, by reason.
    ///   - gone: the rejected deliveries whose device is gone (410). They count as neither success nor failure, unless
    ///     nothing else was answered: ``GoneShare`` asks a person about them.
    package func problem(_ counts: DeliveryCounts, suppressed: [Report.Reason], gone: Int = 0) -> String? {
        let superseded = suppressed.filter { Self.superseding.contains($0.reason) }.reduce(0) { $0 + $1.count }
        if superseded > 0, superseded == counts.audience { return nil }
        let sent = counts.accepted + counts.rejected + counts.unknown
        if sent > 0, counts.accepted < limits.minAccepted {
            return
                "\(counts.accepted.grouped) of \(sent.grouped) pushes were accepted: \(counts.rejected.grouped) were "
                + "rejected, \(counts.unknown.grouped) ended unknown (\(words(limits.minAccepted)))"
        }
        if counts.accepted < limits.minAccepted { return nobody(counts, suppressed) }
        let judged = sent - gone
        return share(counts.rejected - gone, of: judged, "were rejected", "max_rejected", limits.maxRejectedPercent)
            ?? share(counts.unknown, of: judged, "ended unknown", "max_unknown", limits.maxUnknownPercent)
    }

    private static let superseding: Set<String> = [
        SuppressionReason.coalesced.rawValue, SuppressionReason.cancelled.rawValue,
    ]

    private func nobody(_ counts: DeliveryCounts, _ suppressed: [Report.Reason]) -> String {
        guard counts.audience > 0 else { return "no device was reached: the audience selected none" }
        let reasons = suppressed.map { "\($0.reason) \($0.count.grouped)" }.joined(separator: ", ")
        return "no device was reached: all \(counts.audience.grouped) were left out (\(reasons))"
    }

    private func share(_ count: Int, of sent: Int, _ what: String, _ key: String, _ limit: Double) -> String? {
        guard sent > 0, Double(count) * 100 > limit * Double(sent) else { return nil }
        let percent = Double(count * 100) / Double(sent)
        return "\(count.grouped) of \(sent.grouped) pushes \(what), \(percent.percentText) (success.\(key) is "
            + "\(limit.percentText))"
    }

    private func words(_ least: Int) -> String { "success.min_accepted is \(least.grouped)" }
}
