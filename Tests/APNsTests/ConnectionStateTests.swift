import Testing

@testable import APNs

@Suite struct `The warm-up of a connection` {
    static let accepted = PushResponse(status: 200)
    static let dead = PushResponse(status: 410, reason: .unregistered)

    @Test func `a lane goes wide one poll round after the first accepted push`() {
        var warmUp = WarmUp(seesSettings: false)
        #expect(warmUp.streamLimit(whenWide: 100, at: 5) == 1)
        warmUp.answered(Self.accepted, at: 5)
        #expect(warmUp.isSettling(at: 5))
        #expect(warmUp.streamLimit(whenWide: 100, at: 5) == 0)
        #expect(warmUp.streamLimit(whenWide: 100, at: 6) == 100)
        warmUp.coolDown()
        #expect(warmUp.streamLimit(whenWide: 100, at: 6) == 1)
    }

    @Test func `who sees SETTINGS goes wide at once`() {
        var warmUp = WarmUp(seesSettings: true)
        warmUp.answered(Self.accepted, at: 5)
        #expect(warmUp.streamLimit(whenWide: 100, at: 5) == 100)
    }

    @Test func `ten dead tokens in a row open a lane as well`() {
        var warmUp = WarmUp(seesSettings: false)
        for _ in 0..<9 { warmUp.answered(Self.dead, at: 1) }
        #expect(warmUp.isCold)
        warmUp.answered(PushResponse(status: 400, reason: .badDeviceToken), at: 1)
        #expect(warmUp.streamLimit(whenWide: 50, at: 2) == 50)
    }

    @Test(arguments: [
        PushResponse(status: 503, reason: .serviceUnavailable),
        PushResponse(status: 403, reason: .invalidProviderToken),
        PushResponse(status: 400, reason: .badTopic), PushResponse(status: 429, reason: .tooManyRequests),
    ])
    func `rejections that are not the token's fault keep a lane narrow`(answer: PushResponse) {
        var warmUp = WarmUp(seesSettings: true)
        for _ in 0..<50 { warmUp.answered(answer, at: 1) }
        #expect(warmUp.isCold)
    }
}

@Suite struct `The liveness of a connection` {
    private static let second: UInt64 = 1_000_000_000

    private func liveness() -> Liveness {
        var limits = LaneLimits()
        limits.idlePingInterval = .seconds(60)
        limits.silencePingInterval = .seconds(5)
        limits.pingDeadline = .seconds(3)
        return Liveness(limits, now: 0)
    }

    @Test func `an idle connection is asked after a minute, and given up when it stays silent`() {
        var liveness = liveness()
        #expect(liveness.action(at: 0) == .wait(until: 60 * Self.second))
        #expect(liveness.action(at: 60 * Self.second) == .ping)
        liveness.pinged(at: 60 * Self.second)
        #expect(liveness.action(at: 62 * Self.second) == .wait(until: 63 * Self.second))
        #expect(liveness.action(at: 63 * Self.second) == .giveUp)
    }

    @Test func `any bytes are a sign of life`() {
        var liveness = liveness()
        liveness.pinged(at: 60 * Self.second)
        liveness.heard(at: 61 * Self.second)
        #expect(liveness.action(at: 63 * Self.second) == .wait(until: 121 * Self.second))
    }

    @Test func `while answers are waited for it is asked sooner, counted from the first request`() {
        var liveness = liveness()
        liveness.isBusy(true, at: 40 * Self.second)
        #expect(liveness.action(at: 40 * Self.second) == .wait(until: 45 * Self.second))
        liveness.isBusy(true, at: 44 * Self.second)
        #expect(liveness.action(at: 45 * Self.second) == .ping)
        liveness.heard(at: 45 * Self.second)
        liveness.isBusy(false, at: 46 * Self.second)
        #expect(liveness.action(at: 50 * Self.second) == .wait(until: 105 * Self.second))
    }
}
