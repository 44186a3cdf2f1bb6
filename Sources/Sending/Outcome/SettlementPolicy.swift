import APNs
import Model

/// Turns the result of one push into a settlement for the store. The code that sends uses statuses and reasons, and the
/// store uses verdicts.
struct SettlementPolicy: Sendable {
    private let campaign: Campaign
    private let expiry: Expiry
    private let backoff: RetryWait

    init(_ definition: RunDefinition, backoff: RetryWait) {
        campaign = definition.campaign
        expiry = definition.expiry
        self.backoff = backoff
    }

    /// A delivery that was handed to a lane.
    struct Sent: Sendable {
        var lease: Int64
        var device: Int64
        var generation: Int
        var leaseNumber: Int
        /// The number of the request, from 1. A delivery whose request was not started has the number it would have
        /// had.
        var attempt: Int
        /// The number of earlier requests that do not count against `max_attempts`.
        var excused = 0
        var localeIndex: Int?
        var wave: Timestamp?
        var stage: Int?
        /// The time of sending, which is no later than the first byte.
        var sentAt: Timestamp
        /// The index of the delivery's entry in the lane's segment of the journal. Negative if there is none.
        var entry: Int32 = -1
    }

    /// - Parameters:
    ///   - latencyMicroseconds: the latency of the response, if there is one.
    ///   - lag: how far `now` is ahead of the confirmed time. Waits count from `now`, as leases do. Expiry cannot be
    ///     undone, so it is checked against the confirmed time.
    func settlement(
        of sent: Sent, _ result: PushResult, _ row: OutcomePolicy.Row, latencyMicroseconds: Int64 = 0, now: Timestamp,
        lag: Duration = .zero
    ) -> Settlement {
        var settlement = Settlement(
            lease: sent.lease, device: sent.device, generation: sent.generation, leaseNumber: sent.leaseNumber,
            attempt: sent.attempt, verdict: verdict(row, sent, asked: result.waitAsked(at: now - lag), now: now, lag),
            mayHaveReachedAPNs: row.mayHaveArrived, isExcused: row.isExcused, isInDoubt: row.decision == .unknown,
            localeIndex: sent.localeIndex, stage: sent.stage)
        switch result {
        case .answered(let answer):
            settlement.status = answer.status
            settlement.latencyMicroseconds = latencyMicroseconds
            settlement.reason = answer.status == 200 ? nil : answer.reason?.description ?? "Status\(answer.status)"
            if row.consequence == .tokenGone {
                // If the response has no timestamp, use the time of sending (`ProviderProtocol` section 7).
                settlement.effect = .gone(since: answer.timestamp.map { Timestamp(milliseconds: $0) } ?? sent.sentAt)
            }
        case .cutOff(let status):
            settlement.status = status
            settlement.reason = "CutOff\(status)"
        case .unknown(let fault): settlement.reason = fault.description
        case .notSent(let fault):
            settlement.reason = fault.description
            settlement.attempt -= 1
            settlement.isRequest = false
            settlement.isExcused = false
        }
        return settlement
    }

    /// - Parameter asked: the minimum wait that the response asks for.
    private func verdict(
        _ row: OutcomePolicy.Row, _ sent: Sent, asked: Duration?, now: Timestamp, _ lag: Duration
    ) -> Settlement.Verdict {
        switch row.decision {
        case .accepted: .accepted
        case .rejected: .rejected
        case .unknown:
            campaign.mayResendUnknown(afterAttempt: sent.attempt - sent.excused) && !isOver(sent, at: now - lag)
                ? .retry(notBefore: now) : .unknown
        case .retry(let wait):
            retry(
                after: max(backoff.delay(wait, afterAttempt: failures(row, sent)), asked ?? .zero), row, sent, now: now,
                lag)
        }
    }

    /// Returns the number of requests that determine the wait. Excused requests have no attempt limit, so all requests
    /// count for them.
    private func failures(_ row: OutcomePolicy.Row, _ sent: Sent) -> Int {
        row.isExcused ? sent.attempt : sent.attempt - sent.excused
    }

    private func retry(
        after delay: Duration, _ row: OutcomePolicy.Row, _ sent: Sent, now: Timestamp, _ lag: Duration
    ) -> Settlement.Verdict {
        let next = now + delay
        // A request that was not started, or not processed because of an external fault, does not count against
        // `max_attempts`.
        if row.isExcused { return isExpired(sent, at: next - lag) ? .suppressed(.expired) : .retry(notBefore: next) }
        if isOver(sent, at: next - lag) { return .rejected }
        return sent.attempt - sent.excused < campaign.maxAttempts ? .retry(notBefore: next) : .rejected
    }

    private func isOver(_ sent: Sent, at time: Timestamp) -> Bool {
        // `expires_after: 0` means one attempt.
        campaign.expiresAfter == .zero || isExpired(sent, at: time)
    }

    private func isExpired(_ sent: Sent, at time: Timestamp) -> Bool {
        expiry.moment(wave: sent.wave).map { time >= $0 } ?? false
    }
}

extension PushResult {
    /// Returns the wait that the response asks for by `Retry-After`, or `nil` if it asks for none.
    func waitAsked(at now: Timestamp) -> Duration? {
        guard case .answered(let answer) = self else { return nil }
        return answer.retryAfter?.wait(from: now.milliseconds)
    }
}

/// The wait of a delivery before its next attempt.
package struct RetryWait: Sendable {
    /// Returns a random number from 0 to 1, one for each call.
    private let jitter: @Sendable () -> Double

    package init(jitter: @escaping @Sendable () -> Double) {
        self.jitter = jitter
    }

    /// - Parameter attempt: the attempt that has just failed, from 1.
    package func delay(_ wait: OutcomePolicy.Wait, afterAttempt attempt: Int) -> Duration {
        let steps: [Duration] =
            switch wait {
            case .none: [.zero]
            case .device: [.seconds(30), .seconds(60), .seconds(120), .seconds(300), .seconds(900)]
            case .credential: [.seconds(30), .seconds(60), .seconds(120), .seconds(300)]
            // The first retry after a 5xx comes within 2 s, jitter included, because often only the first request after
            // idle time is refused. Apple asks bulk senders to wait 15 minutes (`ProviderProtocol` section 7). The
            // pauses of ``CircuitBreaker`` add up to at least that time.
            case .service: [.milliseconds(1600), .seconds(15), .seconds(60), .seconds(300)]
            }
        let step = steps[min(max(attempt, 1), steps.count) - 1]
        return step + step * (0.2 * jitter())
    }
}
