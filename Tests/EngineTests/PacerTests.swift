@testable import Engine
import Model
import Testing

@Suite struct `Pace` {
    @Test(arguments: [1.0, 7, 100, 5000])
    func `an hour of leases never passes the rate`(rate: Double) {
        let pacer = Pacer(rate: rate)
        var now = Timestamp(milliseconds: 0)
        let end = Timestamp(milliseconds: 60_000)
        var leased = 0
        while now < end {
            switch pacer.allowance(at: now, limit: 1000) {
            case .now(let count):
                pacer.leased(count, at: now)
                leased += count
            case .after(let wait):
                #expect(wait > .zero)
                now = now + wait
            }
        }
        #expect(Double(leased) <= rate * 60 + max(1, rate / 4) + 1)
        #expect(Double(leased) >= rate * 60 * 0.95 - 1)
    }
}
