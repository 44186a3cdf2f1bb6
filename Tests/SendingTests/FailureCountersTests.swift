import APNs
import Model
@testable import Sending
import Testing

@Suite struct `Failure counters` {
    private let empty = FailureCounters(.sandbox, topic: "com.example.app")

    private func count(
        _ counters: inout FailureCounters, _ status: Int, _ reason: String?, times: Int = 1, device: Int64? = nil
    ) {
        let result = PushResult.answered(PushResponse(status: status, reason: reason.map { PushReason($0) }))
        for number in 0..<times {
            counters.count(OutcomePolicy.row(for: result), device: device ?? Int64(number), result: result)
        }
    }

    @Test func `a few dead tokens stop nothing`() {
        var counters = empty
        count(&counters, 200, nil, times: 900)
        count(&counters, 400, "BadDeviceToken", times: 100)
        #expect(counters.verdict == nil)
    }

    @Test func `mostly wrong tokens stop the run and name what to check`() throws {
        var counters = empty
        count(&counters, 200, nil, times: 100)
        count(&counters, 400, "BadDeviceToken", times: 100)
        guard case .environmentMismatch(.sandbox, let reason) = counters.verdict else {
            Issue.record("no breaker opened")
            return
        }
        for word in ["100 of the last 200", "sandbox", "com.example.app", "BadDeviceToken", "no device was changed"] {
            #expect(reason.contains(word))
        }
    }

    @Test func `a million good answers do not hide what comes after`() {
        var counters = empty
        count(&counters, 200, nil, times: 100_000)
        count(&counters, 400, "DeviceTokenNotForTopic", times: 300)
        #expect(counters.verdict == nil)
        count(&counters, 400, "DeviceTokenNotForTopic")
        #expect(counters.verdict != nil)
    }

    @Test func `too few answers are no proof`() {
        var counters = empty
        count(&counters, 400, "BadDeviceToken", times: FailureCounters.answersMin - 1)
        #expect(counters.verdict == nil)
        count(&counters, 400, "BadDeviceToken")
        #expect(counters.verdict != nil)
    }

    @Test func `the window forgets`() {
        var share = SlidingShare()
        for _ in 0..<SlidingShare.windowMax { share.add(true) }
        #expect(share.hits == SlidingShare.windowMax)
        for number in 1...SlidingShare.windowMax + 500 {
            share.add(false)
            #expect(share.hits == max(0, SlidingShare.windowMax - number))
        }
        #expect(share.count == SlidingShare.windowMax)
    }

    @Test func `the third request fault stops the run`() {
        var counters = empty
        count(&counters, 400, "BadTopic", times: 2)
        #expect(counters.verdict == nil)
        count(&counters, 400, "BadTopic")
        guard case .breaker = counters.verdict else {
            Issue.record("no breaker opened")
            return
        }
    }

    @Test(arguments: ["InvalidProviderToken", "BadEnvironmentKeyIdInToken", "Forbidden", "BadCertificate"])
    func `one credential fault stops the run`(reason: String) {
        var counters = empty
        count(&counters, 403, reason)
        guard case .credential(let text) = counters.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains(reason))
    }

    @Test(arguments: [("ExpiredProviderToken", "clock"), ("UnrelatedKeyIdInToken", "team_id")])
    func `a refused provider token is tried again once for each device`(reason: String, advice: String) {
        var counters = empty
        count(&counters, 403, reason, times: 50)
        #expect(counters.verdict == nil)
        // Accepted with the new token; an hour later the same may happen again.
        count(&counters, 200, nil, times: 50)
        count(&counters, 403, reason, times: 50)
        #expect(counters.verdict == nil)
        count(&counters, 403, reason, device: 49)
        guard case .credential(let text) = counters.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains(advice))
        #expect(text.contains(reason))
    }
}
