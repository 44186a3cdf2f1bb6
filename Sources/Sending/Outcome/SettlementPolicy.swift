import APNs
import Model

/// Turns one answer into what the store writes down: the only place where APNs' words become ours.
struct SettlementPolicy: Sendable {
    private let campaign: Campaign
    private let expiry: Expiry
    private let backoff: Backoff

    init(_ definition: RunDefinition, backoff: Backoff) {
        campaign = definition.campaign
        expiry = definition.expiry
        self.backoff = backoff
    }

    struct Sent: Sendable {
        var lease: Int64
        var device: Int64
        var generation: Int
        var attempt: Int
        var doubts: Int
        var localeIndex: Int?
        var wave: Timestamp?
        /// No later than its first byte.
        var sentAt: Timestamp
    }

    func settlement(of sent: Sent, _ result: PushResult, _ row: OutcomePolicy.Row, now: Timestamp) -> Settlement {
        var settlement = Settlement(
            lease: sent.lease, device: sent.device, generation: sent.generation, attempt: sent.attempt,
            verdict: verdict(row, sent, now: now), mayHaveReachedAPNs: row.mayHaveReached,
            isInDoubt: row.decision == .unknown,
            localeIndex: sent.localeIndex)
        switch result {
        case .answered(let answer):
            settlement.status = answer.status
            settlement.reason = answer.status == 200 ? nil : answer.reason?.description ?? "Status\(answer.status)"
            if row.consequence == .tokenGone {
                // Without a timestamp the time of sending stands for it (`apns-protocol.md` section 7).
                settlement.effect = .gone(since: answer.timestamp.map { Timestamp(milliseconds: $0) } ?? sent.sentAt)
            }
        case .unknown(let fault), .notSent(let fault):
            settlement.reason = fault.description
        }
        return settlement
    }

    private func verdict(_ row: OutcomePolicy.Row, _ sent: Sent, now: Timestamp) -> Settlement.Verdict {
        switch row.decision {
        case .accepted: .accepted
        case .rejected: .rejected
        case .unknown:
            campaign.mayResendUnknown(afterAttempt: sent.attempt, doubts: sent.doubts) && !isOver(sent, at: now)
                ? .retry(notBefore: now) : .unknown
        case .retry(let wait): retry(wait, row, sent, now: now)
        }
    }

    private func retry(
        _ wait: OutcomePolicy.Wait, _ row: OutcomePolicy.Row, _ sent: Sent, now: Timestamp
    ) -> Settlement.Verdict {
        let next = now + backoff.delay(wait, afterAttempt: sent.attempt)
        // A request that APNs never looked at, or that waits for a repair, is no attempt.
        if !row.mayHaveReached { return isExpired(sent, at: next) ? .suppressed(.expired) : .retry(notBefore: next) }
        if isOver(sent, at: next) { return .rejected }
        return sent.attempt < campaign.maxAttempts ? .retry(notBefore: next) : .rejected
    }

    private func isOver(_ sent: Sent, at time: Timestamp) -> Bool {
        // `expires_after: 0` means one attempt.
        campaign.expiresAfter == .zero || isExpired(sent, at: time)
    }

    private func isExpired(_ sent: Sent, at time: Timestamp) -> Bool {
        expiry.moment(wave: sent.wave).map { time >= $0 } ?? false
    }
}
