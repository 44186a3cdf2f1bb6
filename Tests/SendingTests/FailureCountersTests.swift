import APNs
import Model
@testable import Sending
import Testing

@Suite struct `Answer tally` {
    private let empty = FailureCounters(.sandbox, topic: "com.example.app")

    private func count(
        _ tally: inout FailureCounters, _ status: Int, _ reason: String?, times: Int = 1, device: Int64? = nil
    ) {
        let result = PushResult.answered(PushResponse(status: status, reason: reason.map { PushReason($0) }))
        for number in 0..<times {
            tally.count(OutcomePolicy.row(for: result), device: device ?? Int64(number), result: result)
        }
    }

    @Test func `a few dead tokens stop nothing`() {
        var tally = empty
        count(&tally, 200, nil, times: 900)
        count(&tally, 400, "BadDeviceToken", times: 100)
        #expect(tally.verdict == nil)
    }

    @Test func `mostly wrong tokens stop the run and name what to check`() throws {
        var tally = empty
        count(&tally, 200, nil, times: 100)
        count(&tally, 400, "BadDeviceToken", times: 100)
        guard case .environmentMismatch(.sandbox, let reason) = tally.verdict else {
            Issue.record("no breaker opened")
            return
        }
        for word in ["100 of the last 200", "sandbox", "com.example.app", "BadDeviceToken", "no device was changed"] {
            #expect(reason.contains(word))
        }
    }

    @Test func `a million good answers do not hide what comes after`() {
        var tally = empty
        count(&tally, 200, nil, times: 100_000)
        count(&tally, 400, "DeviceTokenNotForTopic", times: 300)
        #expect(tally.verdict == nil)
        count(&tally, 400, "DeviceTokenNotForTopic")
        #expect(tally.verdict != nil)
    }

    @Test func `too few answers are no proof`() {
        var tally = empty
        count(&tally, 400, "BadDeviceToken", times: FailureCounters.answersMin - 1)
        #expect(tally.verdict == nil)
        count(&tally, 400, "BadDeviceToken")
        #expect(tally.verdict != nil)
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
        var tally = empty
        count(&tally, 400, "BadTopic", times: 2)
        #expect(tally.verdict == nil)
        count(&tally, 400, "BadTopic")
        guard case .breaker = tally.verdict else {
            Issue.record("no breaker opened")
            return
        }
    }

    @Test(arguments: ["InvalidProviderToken", "BadEnvironmentKeyIdInToken", "Forbidden", "BadCertificate"])
    func `one credential fault stops the run`(reason: String) {
        var tally = empty
        count(&tally, 403, reason)
        guard case .credential(let text) = tally.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains(reason))
    }

    @Test(arguments: [("ExpiredProviderToken", "clock"), ("UnrelatedKeyIdInToken", "team_id")])
    func `a refused provider token is tried again once for each device`(reason: String, advice: String) {
        var tally = empty
        count(&tally, 403, reason, times: 50)
        #expect(tally.verdict == nil)
        // Accepted with the new token; an hour later the same may happen again.
        count(&tally, 200, nil, times: 50)
        count(&tally, 403, reason, times: 50)
        #expect(tally.verdict == nil)
        count(&tally, 403, reason, device: 49)
        guard case .credential(let text) = tally.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains(advice))
        #expect(text.contains(reason))
    }
}
