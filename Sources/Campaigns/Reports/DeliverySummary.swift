import Model
import Store

/// The outcome of one delivery, as a sentence.
struct DeliverySummary {
    let run: Run
    let delivery: DeviceDelivery
    let device: StoredDevice

    var text: String {
        if delivery.outcome.state == .suppressed, delivery.outcome.reason == SuppressionReason.holdout.rawValue {
            return "held out by \(run.campaign), for comparison with devices that got the push"
        }
        let name = run.isTest ? "\(run.campaign) (a test)" : run.campaign
        return "\(name): \(outcome)"
    }

    private var outcome: String {
        switch delivery.outcome.state {
        case .accepted: waited + accepted
        case .rejected: waited + rejected + mayHaveArrived
        case .unknown: "\(waited)sent, and the response was lost (\(reason)); the push may have arrived"
        case .suppressed: suppressed + mayHaveArrived
        case .pending: pending
        }
    }

    private var reason: String { delivery.outcome.reason ?? "no reason" }

    /// The note that an earlier attempt may have arrived, for a delivery that was then rejected or suppressed.
    private var mayHaveArrived: String {
        delivery.outcome.doubts > 0 ? "; an earlier response was lost: the push may have arrived" : ""
    }

    private var notSent: String { delivery.outcome.doubts > 0 ? "not sent again" : "not sent" }

    private var answer: String {
        delivery.outcome.status > 0 ? "\(delivery.outcome.status) \(reason)" : reason
    }

    /// The wait before the first request, in words. Later waits are not named, because they were for retries.
    private var waited: String {
        guard let heldUntil = delivery.heldUntil, let what = Self.held(delivery.heldFor) else { return "" }
        return "waited for \(what) until \(heldUntil.iso8601), then "
    }

    private static func held(_ reason: SuppressionReason?) -> String? {
        switch reason {
        case .silentBudget: "a slot of its silent budget"
        case .frequencyCap: "a slot of a frequency cap"
        case .quietHours: "the end of its quiet hours"
        case nil: nil
        default: "its time"
        }
    }

    private var accepted: String {
        let attempts = delivery.outcome.attempts
        let variant = delivery.outcome.variant.flatMap { index in
            run.definition.campaign.variants.indices.contains(index)
                ? run.definition.campaign.variants[index].name : nil
        }
        var text = "accepted by APNs"
        if let variant { text += ", variant \(variant)" }
        if attempts > 1 { text += ", at attempt \(attempts)" }
        let doubts = delivery.outcome.doubts
        if doubts > 0 { text += ", after \(doubts) lost response(s): the push may have arrived twice" }
        return text
    }

    private var rejected: String {
        let attempts = delivery.outcome.attempts
        let text = "rejected by APNs: \(answer)" + (attempts > 1 ? ", at attempt \(attempts)" : "")
        guard delivery.outcome.status == 410, device.status != .gone else { return text }
        return text
            + (device.generation > delivery.outcome.generation
                ? "; its token was replaced" : "; the device had registered again since, and was kept")
    }

    private var pending: String {
        if delivery.isLeased { return "in flight now, attempt \(delivery.outcome.attempts + 1)" }
        let isRetry = delivery.outcome.attempts > 0
        guard let notBefore = delivery.notBefore else {
            return isRetry
                ? "attempt \(delivery.outcome.attempts) got \(answer); waits for the next attempt" : waitsForTurn
        }
        let isHeld = delivery.outcome.reason == delivery.heldFor?.rawValue
        if isRetry, !isHeld {
            return
                "attempt \(delivery.outcome.attempts) got \(answer); the next attempt may start at \(notBefore.iso8601)"
        }
        return "waits for \(Self.held(delivery.heldFor) ?? "its time") until \(notBefore.iso8601)"
    }

    private var waitsForTurn: String {
        switch run.state {
        case .paused: "waits: the run is paused" + (run.stateReason.map { " (\($0))" } ?? "")
        case .scheduled: "waits for the run to start"
        default: "waits for its turn"
        }
    }

    private var suppressed: String {
        switch delivery.outcome.reason.flatMap(SuppressionReason.init) {
        case .holdout: "held out"
        case .silentBudget: "\(notSent): its silent budget was used up, and the next slot comes after the push expires"
        case .frequencyCap:
            "\(notSent): a frequency cap was used up, and the next slot comes after the push expires, or too late"
        case .coalesced: "\(waited)\(notSent): a newer background push of the same kind replaced it"
        case .quietHours: "\(notSent): it was within its quiet hours"
        case .expired:
            "\(waited)\(notSent): the push had expired by then"
                + (delivery.outcome.attempts > 0 ? ", after \(delivery.outcome.attempts) attempt(s)" : "")
        case .alertsNotAllowed: "\(notSent): alerts are not allowed on the device"
        case .wrongEnvironment: "\(notSent): the device was suspended"
        case .tokenGone: "\(notSent): its token was gone"
        case .payloadTooLarge: "\(notSent): the payload would have been larger than Apple accepts"
        case .cancelled: "\(waited)\(notSent): the run was cancelled"
        case .late: "\(notSent): its time had passed when the run started"
        case .unknownZone: "\(notSent): its time zone is not known, and the campaign leaves such devices out"
        case .duplicateOfUser: "\(notSent): another device of the same user was selected (dedupe: user)"
        case nil: "\(notSent): \(reason)"
        }
    }
}
