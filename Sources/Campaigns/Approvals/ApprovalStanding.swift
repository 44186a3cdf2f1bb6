import CampaignFiles
import Model

/// The meaning of a request's state for a reader. Every page, command and list takes it from here.
package enum ApprovalStanding: Hashable, Sendable {
    /// The request is no longer open; it is in this state.
    case decided(String)
    /// The files have changed since the request, so that a start needs another plan.
    case outdated
    case awaitingSignatures
    /// It has all signatures, and they lapse before the schedule starts it. The times are in ISO 8601.
    case lapsesBeforeStart(lapse: String, start: String)
    /// It has all signatures, and the schedule starts it.
    case startsOnSchedule
    /// It has all signatures, and a person may start it.
    case ready
}

extension ApprovalResult {
    /// Whether the plan waits for signatures, or has them and was not used.
    package var isOpen: Bool { state == ApprovalRequest.State.open.rawValue }

    /// How many signatures count: `0 of 1 signature`.
    package var signed: String { "\(needs - missing) of \(needs.counted("signature"))" }

    package var standing: ApprovalStanding {
        guard isOpen else { return .decided(state) }
        if isOutdated == true { return .outdated }
        guard missing == 0 else { return .awaitingSignatures }
        guard let startsAt else { return .ready }
        if let lapsesAt, let lapse = ISOTime.parse(lapsesAt), let start = ISOTime.parse(startsAt),
            lapse < start
        {
            return .lapsesBeforeStart(lapse: lapsesAt, start: startsAt)
        }
        return .startsOnSchedule
    }

    /// Whether it has all signatures, but they lapse before the schedule starts it.
    package var isAboutToLapse: Bool {
        if case .lapsesBeforeStart = standing { true } else { false }
    }

    /// The state in a few words.
    package var stateSummary: String {
        switch standing {
        case .decided(ApprovalRequest.State.used.rawValue): "used" + (run.map { " by run \($0)" } ?? "")
        case .decided(let state): state
        case .outdated: "outdated, \(signed)"
        case .awaitingSignatures: "awaiting approval, \(signed)"
        case .lapsesBeforeStart: "lapses before its start, \(signed)"
        case .startsOnSchedule, .ready: "approved, \(signed)"
        }
    }

    /// What happens next, in a sentence; `nil` for a decided request, and for one that needs more signatures.
    package var nextStep: String? {
        switch standing {
        case .decided, .awaitingSignatures: nil
        case .outdated:
            "The campaign's files, a segment or the correction have changed since it was requested: this plan is no "
                + "longer sent. Plan it again, and request approval of the new plan."
        case .lapsesBeforeStart(let lapse, let start):
            "It has all signatures, but the signatures lapse at \(lapse), before the start at \(start): it needs to be "
                + "signed again."
        case .startsOnSchedule: "It has all signatures: it starts automatically on schedule."
        case .ready: "It has all signatures: a sender may send it."
        }
    }
}
