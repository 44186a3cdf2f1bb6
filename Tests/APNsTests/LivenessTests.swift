import Testing

@testable import APNs

struct LivenessTests {
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
