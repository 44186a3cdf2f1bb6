import Model
import Store
@testable import Sending
import Testing

@Suite struct `Pace` {
    @Test(arguments: [1.0, 7, 100, 5000])
    func `an hour of leases never passes the rate`(rate: Double) {
        let pacer = Pacer(Campaign.Pace(pushesPerSecond: rate))
        var now = Duration.zero
        let end = Duration.seconds(60)
        var leased = 0
        while now < end {
            switch pacer.allowance(at: now, limit: 1000) {
            case .now(let count):
                pacer.leased(count)
                leased += count
            case .after(let wait):
                #expect(wait > .zero)
                now = now + wait
            }
        }
        #expect(Double(leased) <= rate * 60 + max(1, rate / 4) + 1)
        #expect(Double(leased) >= rate * 60 * 0.95 - 1)
    }

    /// Pushes leased in each of the given seconds.
    private func leases(_ pacer: Pacer, seconds: Int) -> [Int] {
        var now = Duration.seconds(5)
        let start = now
        var leased = [Int](repeating: 0, count: seconds)
        while now < start + .seconds(seconds) {
            switch pacer.allowance(at: now, limit: 1000) {
            case .now(let count):
                pacer.leased(count)
                leased[Int((now - start).inSeconds)] += count
            case .after(let wait): now = now + wait
            }
        }
        return leased
    }

    @Test(arguments: [(1000.0, 20), (5000, 120), (50, 10), (20, 60)])
    func `a ramp grows evenly from a tenth to the whole rate`(rate: Double, seconds: Int) {
        let leased = leases(Pacer(Campaign.Pace(pushesPerSecond: rate, ramp: .seconds(seconds))), seconds: seconds * 2)
        for second in 5..<(seconds * 2 - 5) {
            // Ten seconds around it, so that the bucket's grain does not matter.
            let mean = Double(leased[(second - 5)..<(second + 5)].reduce(0, +)) / 10
            let middle = Double(second - 5 + second + 5) / 2
            let expected =
                (0..<10).map { tenth in
                    let time = middle - 4.5 + Double(tenth)
                    return rate * (0.1 + 0.9 * min(1, time / Double(seconds)))
                }.reduce(0, +) / 10
            #expect(abs(mean - expected) <= rate * 0.03 + 0.5, "second \(second): \(mean) of \(expected)")
        }
        let whole = Double(leased.reduce(0, +))
        let area = rate * Double(seconds) * 1.55
        #expect(whole <= area + rate / 4 + 1 && whole >= area * 0.97 - 1)
    }

    @Test(arguments: [1, 50, 60, 61, 3600])
    func `idle time is not made up for: a quarter of a second's worth is there, not more`(idleSeconds: Int) {
        let pacer = Pacer(Campaign.Pace(pushesPerSecond: 1000))
        #expect(pacer.allowance(at: .seconds(5), limit: 1_000_000) == .now(250))
        pacer.leased(250)
        #expect(pacer.allowance(at: .seconds(5 + idleSeconds), limit: 1_000_000) == .now(250))
    }

    @Test(arguments: [(60, 250), (3600, 25)])
    func `after a minute without a push the ramp begins anew`(idleSeconds: Int, allowed: Int) {
        let pacer = Pacer(Campaign.Pace(pushesPerSecond: 1000, ramp: .seconds(20)))
        #expect(pacer.allowance(at: .seconds(5), limit: 1_000_000) == .now(25))
        pacer.leased(25)
        #expect(pacer.allowance(at: .seconds(5 + idleSeconds), limit: 1_000_000) == .now(allowed))
    }

    @Test func `a clock that goes back gives nothing away`() {
        let pacer = Pacer(Campaign.Pace(pushesPerSecond: 100, ramp: .seconds(10)))
        let start = Duration.seconds(100)
        _ = pacer.allowance(at: start, limit: 1000)
        pacer.leased(2)
        for step in 0..<1000 {
            let time = start + .milliseconds(step % 2 == 0 ? 100 : 0)
            if case .now(let count) = pacer.allowance(at: time, limit: 1000) { pacer.leased(count) }
        }
        #expect(pacer.allowance(at: start + .milliseconds(100), limit: 1000) != .now(2))
    }
}
