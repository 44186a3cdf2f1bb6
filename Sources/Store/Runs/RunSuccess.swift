package import Model

/// The rule that decides whether a finished run did what it was started for: enough pushes were accepted, and most of
/// what was sent was accepted.
///
/// A delivery that was left out on purpose (``SuppressionReason/isOnPurpose``) is no failure: it counts as much as an
/// acceptance. If more than half of a run was left out on purpose, no acceptances are required, because the few that
/// remain prove nothing.
package struct RunSuccess: Sendable {
    private let limits: Configuration.SuccessLimits

    package init(_ limits: Configuration.SuccessLimits) { self.limits = limits }

    /// Returns why the run is no success, for a person; `nil` for a success.
    ///
    /// - Parameters:
    ///   - suppressed: the deliveries that were suppressed, by reason.
    ///   - gone: the rejected deliveries whose device is gone (410). They do not count as accepted, but are excluded
    ///     from the shares of failures: ``GoneShare`` evaluates them.
    ///   - attempted: the suppressed deliveries that had a request before.
    ///   - mayHaveArrived: the rejected and suppressed deliveries that had an earlier request without a response.
    package func problem(
        _ counts: DeliveryCounts, suppressed: [Report.Reason], gone: Int = 0, attempted: Int = 0,
        mayHaveArrived: Int = 0
    ) -> String? {
        let leftOut = suppressed.count(of: \.isOnPurpose)
        let ended = counts.accepted + counts.rejected + counts.unknown
        if counts.accepted < limits.minAccepted, leftOut * 2 <= counts.audience {
            guard ended + attempted > 0 else { return noDevice(counts, suppressed) }
            return few(counts, of: ended + attempted, attempted: attempted, mayHaveArrived: mayHaveArrived)
        }
        let judged = ended - gone + leftOut
        let excess =
            share(counts.rejected - gone, of: judged, "were rejected", "max_rejected", limits.maxRejectedPercent)
            ?? share(counts.unknown, of: judged, "ended unknown", "max_unknown", limits.maxUnknownPercent)
        return mayHaveArrived == 0
            ? excess
            : excess.map { "\($0); \(mayHaveArrived.grouped) that ended rejected or suppressed may have arrived" }
    }

    /// Returns whether an unsuccessful run started no request. `reason` is the text that ``problem`` returned.
    package static func hasNoRequest(_ counts: DeliveryCounts, reason: String) -> Bool {
        counts.suppressed == counts.audience && reason.hasPrefix(noDevice)
    }

    private static let noDevice = "no device was reached"

    private func few(_ counts: DeliveryCounts, of sent: Int, attempted: Int, mayHaveArrived: Int) -> String {
        let doubts = mayHaveArrived > 0 ? " for certain, \(mayHaveArrived.grouped) may have arrived" : ""
        let suppressed = attempted > 0 ? ", \(attempted.grouped) were suppressed after an attempt" : ""
        return "\(counts.accepted.grouped) of \(sent.grouped) pushes were accepted\(doubts): "
            + "\(counts.rejected.grouped) were rejected, \(counts.unknown.grouped) ended unknown\(suppressed) "
            + "(success.min_accepted is \(limits.minAccepted.grouped))"
    }

    private func noDevice(_ counts: DeliveryCounts, _ suppressed: [Report.Reason]) -> String {
        guard counts.audience > 0 else { return "\(Self.noDevice): the audience selected none" }
        let reasons = suppressed.map { "\($0.reason) \($0.count.grouped)" }.joined(separator: ", ")
        return "\(Self.noDevice): all \(counts.audience.grouped) were left out (\(reasons))"
    }

    private func share(_ count: Int, of judged: Int, _ what: String, _ key: String, _ limit: Double) -> String? {
        guard judged > 0, Double(count) * 100 > limit * Double(judged) else { return nil }
        let percent = Proportion(count, of: judged).percentText ?? ""
        return "\(count.grouped) of \(judged.grouped) pushes \(what), \(percent) (success.\(key) is "
            + "\(limit.percentText))"
    }
}
