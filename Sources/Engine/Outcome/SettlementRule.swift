import APNs
import Model

/// Turns one answer into what the store writes down: the only place where APNs' words become ours.
struct SettlementRule: Sendable {
    private let campaign: Campaign
    private let expiresAt: Timestamp?
    private let backoff: Backoff

    init(_ definition: RunDefinition, backoff: Backoff) {
        campaign = definition.campaign
        expiresAt = definition.expiresAt
        self.backoff = backoff
    }

    struct Sent: Sendable {
        var lease: Int64
        var device: Int64
        var generation: Int
        var attempt: Int
        var doubts: Int
        var localeIndex: Int?
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
                // Without a timestamp the moment of the answer stands for it (`apns-protocol.md` section 7).
                settlement.effect = .gone(since: answer.timestamp.map { Timestamp(milliseconds: $0) } ?? now)
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
            campaign.mayResendUnknown(afterAttempt: sent.attempt, doubts: sent.doubts) && !isOver(at: now)
                ? .retry(notBefore: now) : .unknown
        case .retry(let wait): retry(wait, row, attempt: sent.attempt, now: now)
        }
    }

    private func retry(
        _ wait: OutcomePolicy.Wait, _ row: OutcomePolicy.Row, attempt: Int, now: Timestamp
    ) -> Settlement.Verdict {
        let next = now + backoff.delay(wait, afterAttempt: attempt)
        if isOver(at: next) { return row.mayHaveReached ? .rejected : .suppressed(.expired) }
        // A request that APNs never looked at, or that waits for a repair, does not use up attempts.
        if !row.mayHaveReached { return .retry(notBefore: next) }
        return attempt < campaign.maxAttempts ? .retry(notBefore: next) : .rejected
    }

    private func isOver(at time: Timestamp) -> Bool {
        // `expires_after: 0` means one attempt.
        if campaign.expiresAfter == .zero { return true }
        return expiresAt.map { time >= $0 } ?? false
    }
}
