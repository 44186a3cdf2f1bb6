import APNs
@testable import Engine
import Testing

@Suite struct `Answer tally` {
    private func count(_ tally: inout AnswerTally, _ status: Int, _ reason: String?, times: Int = 1, attempt: Int = 1) {
        let result = PushResult.answered(PushAnswer(status: status, reason: reason.map { PushReason($0) }))
        for _ in 0..<times { tally.count(OutcomePolicy.row(for: result), attempt: attempt, result: result) }
    }

    @Test func `a few dead tokens stop nothing`() {
        var tally = AnswerTally()
        count(&tally, 200, nil, times: 900)
        count(&tally, 400, "BadDeviceToken", times: 100)
        #expect(tally.verdict == nil)
    }

    @Test func `mostly wrong tokens stop the run and name what to check`() throws {
        var tally = AnswerTally()
        count(&tally, 200, nil, times: 100)
        count(&tally, 400, "BadDeviceToken", times: 100)
        guard case .breaker(let reason) = tally.verdict else {
            Issue.record("no breaker opened")
            return
        }
        #expect(reason.contains("environment"))
        #expect(reason.contains("no device was changed"))
    }

    @Test func `too few answers are no proof`() {
        var tally = AnswerTally()
        count(&tally, 400, "BadDeviceToken", times: AnswerTally.answersMin - 1)
        #expect(tally.verdict == nil)
        #expect(tally.isWrongPlace)
    }

    @Test func `the third request fault stops the run`() {
        var tally = AnswerTally()
        count(&tally, 400, "BadTopic", times: 2)
        #expect(tally.verdict == nil)
        count(&tally, 400, "BadTopic")
        #expect(tally.verdict != nil)
    }

    @Test(arguments: ["InvalidProviderToken", "BadEnvironmentKeyIdInToken", "Forbidden", "BadCertificate"])
    func `one credential fault stops the run`(reason: String) {
        var tally = AnswerTally()
        count(&tally, 403, reason)
        guard case .credential(let text) = tally.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains(reason))
    }

    @Test func `an expired provider token is renewed once, then the clock is blamed`() {
        var tally = AnswerTally()
        count(&tally, 403, "ExpiredProviderToken", times: 50, attempt: 1)
        #expect(tally.verdict == nil)
        count(&tally, 403, "ExpiredProviderToken", attempt: 2)
        guard case .credential(let text) = tally.verdict else {
            Issue.record("no credential fault")
            return
        }
        #expect(text.contains("clock"))
    }
}
