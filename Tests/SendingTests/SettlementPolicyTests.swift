import APNs
import Model
@testable import Sending
import Testing

@Suite struct `Settlement policy` {
    static let planned = Timestamp(milliseconds: 1_800_000_000_000)
    static let sent = SettlementPolicy.Sent(
        lease: 1, device: 7, generation: 2, leaseNumber: 4, attempt: 1, localeIndex: 0, sentAt: planned - .seconds(1))

    private func rule(
        expiresAfter: Duration? = .seconds(3600), onUnknown: Campaign.OnUnknown = .resend, maxAttempts: Int = 3
    ) -> SettlementPolicy {
        var campaign = Campaign(name: "c", topic: "com.example.app", pushType: .alert, template: "t")
        campaign.expiresAfter = expiresAfter
        campaign.onUnknown = onUnknown
        campaign.maxAttempts = maxAttempts
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: Self.planned)
        return SettlementPolicy(definition, backoff: RetryWait(jitter: { 0 }))
    }

    private func settle(
        _ rule: SettlementPolicy, _ result: PushResult, attempt: Int = 1, excused: Int = 0, now: Timestamp = planned
    ) -> Settlement {
        var sent = Self.sent
        sent.attempt = attempt
        sent.excused = excused
        return rule.settlement(of: sent, result, OutcomePolicy.row(for: result), now: now)
    }

    private func answered(
        _ status: Int, _ reason: PushReason?, timestamp: Int64? = nil, retryAfter: RetryAfter? = nil
    ) -> PushResult {
        .answered(PushResponse(status: status, reason: reason, timestamp: timestamp, retryAfter: retryAfter))
    }

    @Test func `200 is accepted and has no reason`() {
        let settlement = settle(rule(), answered(200, nil))
        #expect(settlement.verdict == .accepted)
        #expect(settlement.reason == nil)
        #expect(settlement.status == 200)
    }

    @Test func `a 429 delays only that device, and longer each time`() {
        let first = settle(rule(), answered(429, .tooManyRequests), attempt: 1)
        let second = settle(rule(), answered(429, .tooManyRequests), attempt: 2)
        #expect(first.verdict == .retry(notBefore: Self.planned + .seconds(30)))
        #expect(second.verdict == .retry(notBefore: Self.planned + .seconds(60)))
    }

    @Test(
        arguments: [
            (429, .tooManyRequests, .seconds(45), 45_000), (429, .tooManyRequests, .seconds(5), 30_000),
            (429, .tooManyProviderTokenUpdates, .seconds(90), 90_000),
            (503, .serviceUnavailable, .seconds(45), 45_000), (503, .serviceUnavailable, .seconds(1), 1600),
            (503, .serviceUnavailable, .moment(1_800_000_045_000), 45_000),
            (503, .serviceUnavailable, .moment(1_799_999_999_000), 1600),
        ] as [(Int, PushReason, RetryAfter, Int)])
    func `no retry comes sooner than the response allows`(
        status: Int, reason: PushReason, retryAfter: RetryAfter, milliseconds: Int
    ) {
        let settlement = settle(rule(), answered(status, reason, retryAfter: retryAfter))
        #expect(settlement.verdict == .retry(notBefore: Self.planned + .milliseconds(milliseconds)))
    }

    @Test func `no push waits past its expiry, even if the response demands it`() {
        let answer = answered(503, .serviceUnavailable, retryAfter: .seconds(3000))
        #expect(settle(rule(), answer, now: Self.planned + .seconds(599)).verdict != .rejected)
        #expect(settle(rule(), answer, now: Self.planned + .seconds(600)).verdict == .rejected)
    }

    @Test func `the last attempt is final and keeps its reason`() {
        let settlement = settle(rule(), answered(503, .serviceUnavailable), attempt: 3)
        #expect(settlement.verdict == .rejected)
        #expect(settlement.reason == "ServiceUnavailable")
    }

    @Test func `no retry is planned past the expiry`() {
        let late = Self.planned + .seconds(3600 - 29)
        #expect(settle(rule(), answered(429, .tooManyRequests), now: late).verdict == .rejected)
        #expect(settle(rule(), .notSent(.stopped), now: Self.planned + .seconds(3600)).verdict == .suppressed(.expired))
    }

    @Test func `a clock that is ahead expires nothing, and waits count from that clock`() {
        let (ahead, now) = (Duration.seconds(7200), Self.planned + .seconds(7200))
        func settle(_ result: PushResult) -> Settlement.Verdict {
            rule().settlement(of: Self.sent, result, OutcomePolicy.row(for: result), now: now, lag: ahead).verdict
        }
        #expect(settle(answered(429, .tooManyRequests)) == .retry(notBefore: now + .seconds(30)))
        #expect(settle(.unknown(.deadline)) == .retry(notBefore: now))
        #expect(settle(.notSent(.stopped)) == .retry(notBefore: now))
        let until = RetryAfter.moment(Self.planned.milliseconds + 45_000)
        #expect(
            settle(answered(429, .tooManyRequests, retryAfter: until)) == .retry(notBefore: now + .seconds(45)))
    }

    @Test func `expires_after 0 means one attempt`() {
        #expect(settle(rule(expiresAfter: .zero), answered(503, .shutdown)).verdict == .rejected)
        #expect(settle(rule(expiresAfter: .zero), .unknown(.deadline)).verdict == .unknown)
        // A request that was not written, or refused before its push was examined, uses up no attempt.
        for result in [.notSent(.stopped), answered(403, .invalidProviderToken), answered(400, .badTopic)] {
            #expect(settle(rule(expiresAfter: .zero), result).verdict == .retry(notBefore: Self.planned))
        }
    }

    @Test func `an unknown delivery is retried until its attempts are used up under resend, and never under skip`() {
        #expect(settle(rule(), .unknown(.deadline), attempt: 1).verdict == .retry(notBefore: Self.planned))
        #expect(settle(rule(), .unknown(.deadline), attempt: 2).verdict == .retry(notBefore: Self.planned))
        #expect(settle(rule(), .unknown(.deadline), attempt: 3).verdict == .unknown)
        #expect(settle(rule(), .unknown(.deadline)).isInDoubt)
        #expect(!settle(rule(), answered(429, .tooManyRequests)).isInDoubt)
        #expect(settle(rule(onUnknown: .skip), .unknown(.deadline)).verdict == .unknown)
        #expect(settle(rule(), .unknown(.deadline)).reason == "DeadlineExceeded")
    }

    @Test func `a request that was not written is pending again, however often`() {
        let settlement = settle(rule(), .notSent(.streamRefused), attempt: 9)
        #expect(settlement.verdict == .retry(notBefore: Self.planned))
        #expect(!settlement.mayHaveReachedAPNs)
        #expect(settlement.attempt == 8 && settlement.leaseNumber == 4)
    }

    @Test func `a fault that is not the push's uses up no attempt`() {
        for result in [
            .notSent(.unreachable("dns")), answered(403, .invalidProviderToken),
            answered(429, .tooManyProviderTokenUpdates),
        ] {
            let settlement = settle(rule(), result, attempt: 3)
            let isStarted = result != .notSent(.unreachable("dns"))
            #expect(settlement.attempt == (isStarted ? 3 : 2) && settlement.isExcused == isStarted)
            guard case .retry = settlement.verdict else {
                Issue.record("\(result) ends as \(settlement.verdict)")
                continue
            }
        }
    }

    @Test func `excused requests leave all attempts to later requests`() {
        let excused = settle(rule(), answered(503, .serviceUnavailable), attempt: 4, excused: 2)
        #expect(excused.verdict == .retry(notBefore: Self.planned + .seconds(15)))
        #expect(settle(rule(), answered(503, .serviceUnavailable), attempt: 5, excused: 2).verdict == .rejected)
        #expect(settle(rule(), .unknown(.deadline), attempt: 4, excused: 2).verdict == .retry(notBefore: Self.planned))
        #expect(settle(rule(), .unknown(.deadline), attempt: 5, excused: 2).verdict == .unknown)
    }

    @Test func `a device is gone since the timestamp of the 410, or else since the push was sent`() {
        let dated = settle(rule(), answered(410, .unregistered, timestamp: 1_700_000_000_123))
        #expect(dated.effect == .gone(since: Timestamp(milliseconds: 1_700_000_000_123)))
        #expect(dated.verdict == .rejected)
        #expect(settle(rule(), answered(410, .expiredToken)).effect == .gone(since: Self.planned - .seconds(1)))
    }

    @Test func `a response that broke off changes no device, and the push is retried later each time`() {
        for status in [400, 403, 410, 413] {
            let first = settle(rule(expiresAfter: .zero), .cutOff(status: status))
            #expect(first.effect == .none && first.isExcused && !first.mayHaveReachedAPNs && first.status == status)
            #expect(first.verdict == .retry(notBefore: Self.planned + .milliseconds(1600)))
            let third = settle(rule(), .cutOff(status: status), attempt: 3, excused: 2)
            #expect(third.verdict == .retry(notBefore: Self.planned + .seconds(60)))
        }
        #expect(settle(rule(), .cutOff(status: 503), attempt: 3).verdict == .rejected)
    }

    @Test func `an error without a reason is recorded by its status`() {
        #expect(settle(rule(), answered(502, nil)).reason == "Status502")
        #expect(settle(rule(), answered(400, .other("SomethingNew"))).reason == "SomethingNew")
    }
}

@Suite struct `Backoff delays` {
    @Test func `jitter adds at most a fifth`() {
        let least = RetryWait(jitter: { 0 }).delay(.device, afterAttempt: 1)
        let most = RetryWait(jitter: { 1 }).delay(.device, afterAttempt: 1)
        #expect(least == .seconds(30))
        #expect(most == .seconds(36))
    }

    @Test(
        arguments: [
            (OutcomePolicy.Wait.device, 30_000, 900), (.service, 1600, 300), (.credential, 30_000, 300), (.none, 0, 0),
        ])
    func `delays grow up to the last step`(wait: OutcomePolicy.Wait, firstMs: Int, last: Int) {
        let backoff = RetryWait(jitter: { 0 })
        let delays = (1...9).map { backoff.delay(wait, afterAttempt: $0) }
        #expect(delays == delays.sorted())
        #expect(delays.first == .milliseconds(firstMs))
        #expect(delays.last == .seconds(last))
    }

    @Test(arguments: [0, 0.5, 1]) func `the first retry of a 5xx comes within 2 s`(jitter: Double) {
        #expect(RetryWait(jitter: { jitter }).delay(.service, afterAttempt: 1) <= .seconds(2))
        #expect(CircuitBreaker.delays[0] * (1 + 0.2 * jitter) <= .seconds(2))
    }
}
