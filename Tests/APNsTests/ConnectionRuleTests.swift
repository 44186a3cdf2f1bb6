import Testing

@testable import APNs

struct ConnectionRuleTests {
    static let accepted = PushAnswer(status: 200)
    static let dead = PushAnswer(status: 410, reason: .unregistered)

    @Test func `a lane goes wide one poll round after the first accepted push`() {
        var warmth = Warmth()
        #expect(warmth.streamLimit(whenWide: 100) == 1)
        warmth.answered(Self.accepted)
        #expect(warmth.streamLimit(whenWide: 100) == 0)
        warmth.polled()
        #expect(warmth.streamLimit(whenWide: 100) == 100)
        warmth.cooled()
        #expect(warmth.streamLimit(whenWide: 100) == 1)
    }

    @Test func `ten dead tokens in a row open a lane as well`() {
        var warmth = Warmth()
        for _ in 0..<9 { warmth.answered(Self.dead) }
        #expect(warmth.isCold)
        warmth.answered(PushAnswer(status: 400, reason: .badDeviceToken))
        warmth.polled()
        #expect(warmth.streamLimit(whenWide: 50) == 50)
    }

    @Test(arguments: [
        PushAnswer(status: 503, reason: .serviceUnavailable), PushAnswer(status: 403, reason: .invalidProviderToken),
        PushAnswer(status: 400, reason: .badTopic), PushAnswer(status: 429, reason: .tooManyRequests),
    ])
    func `rejections that are not the token's fault keep a lane narrow`(answer: PushAnswer) {
        var warmth = Warmth()
        for _ in 0..<50 { warmth.answered(answer) }
        #expect(warmth.isCold)
    }

    @Test func `misses in a row retire a connection and an answer between them forgives`() {
        var health = health(misses: 3)
        health.answered()
        #expect(health.missedDeadline() == .goOn)
        #expect(health.missedDeadline() == .goOn)
        health.answered()
        #expect(health.missedDeadline() == .goOn)
        #expect(health.missedDeadline() == .goOn)
        #expect(health.missedDeadline() == .retire)
    }

    @Test func `a connection that ends before its first answer counts as a failed attempt`() {
        var health = health(attempts: 3)
        health.opened()
        #expect(health.lost() == .holdOff(failures: 1))
        health.opened()
        #expect(health.missedDeadline() == .holdOff(failures: 2))
        #expect(health.failed() == .giveUp)
    }

    @Test func `an answer forgets earlier failures`() {
        var health = health(attempts: 2)
        #expect(health.failed() == .holdOff(failures: 1))
        health.opened()
        health.answered()
        #expect(health.lost() == .goOn)
        health.opened()
        #expect(health.lost() == .holdOff(failures: 1))
    }

    @Test func `a service that was there before is waited for longer`() {
        var limits = LaneLimits()
        limits.connectAttemptsMax = 2
        limits.reconnectAttemptsMax = 4
        var health = ConnectionHealth(limits)
        #expect(health.failed() == .holdOff(failures: 1))
        health.opened()
        health.answered()
        for failures in 1...3 { #expect(health.failed() == .holdOff(failures: failures)) }
        #expect(health.failed() == .giveUp)
    }

    @Test(arguments: [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (500, 60)])
    func `the wait doubles from a second to a minute`(failures: Int, seconds: Int) {
        let backOff = ConnectBackOff(jitter: { 0 })
        #expect(backOff.delay(afterFailures: failures) == .seconds(seconds))
        let early = ConnectBackOff(jitter: { 1 })
        #expect(early.delay(afterFailures: failures) == .seconds(seconds) * 0.75)
    }

    private func health(misses: Int = 3, attempts: Int = 3) -> ConnectionHealth {
        var limits = LaneLimits()
        limits.missedDeadlinesMax = misses
        limits.connectAttemptsMax = attempts
        return ConnectionHealth(limits)
    }
}
