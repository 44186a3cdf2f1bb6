import Model
import Store
import Testing

@testable import Sending

/// When people are told that an endpoint gives no response.
struct EndpointReachTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    /// The clocks so many seconds after noon.
    private func at(_ seconds: Int) -> ClockReading {
        ClockReading(wall: Self.noon + .seconds(seconds), uptime: .seconds(1000 + seconds), boot: "")
    }

    @Test func `is after 5 s without one, once, and its beginning is named`() {
        var reach = EndpointReach()
        let changes = [0, 3, 6, 9, 12].map { reach.look(isWaiting: true, at: at($0)) }
        #expect(changes == [nil, nil, .lost(since: Self.noon), nil, nil])
        #expect(reach.outage(at: at(12).uptime) == Self.noon)
    }

    @Test func `is not while there are responses, or nothing is waited for`() {
        var reach = EndpointReach()
        for second in stride(from: 0, to: 60, by: 3) {
            #expect(reach.look(isWaiting: true, at: at(second)) == nil)
            reach.heard(at: at(second + 1).uptime)
        }
        for second in stride(from: 60, to: 120, by: 3) {
            #expect(reach.look(isWaiting: second % 2 == 0, at: at(second)) == nil)
        }
        #expect(reach.outage(at: at(120).uptime) == nil)
    }

    @Test func `ends with the first response, which is told once`() {
        var reach = EndpointReach()
        for second in [0, 3, 6] { _ = reach.look(isWaiting: true, at: at(second)) }
        reach.heard(at: at(7).uptime)
        #expect(reach.outage(at: at(7).uptime) == nil)
        #expect(reach.look(isWaiting: true, at: at(9)) == .found)
        #expect(reach.look(isWaiting: true, at: at(12)) == nil)
        #expect(reach.look(isWaiting: true, at: at(18)) == .lost(since: Self.noon + .seconds(9)))
    }

    @Test func `ends with the first response, also if the run is over before the next look`() {
        var reach = EndpointReach()
        for second in [0, 3, 6] { _ = reach.look(isWaiting: true, at: at(second)) }
        #expect(reach.takeFound() == nil)
        reach.heard(at: at(7).uptime)
        #expect(reach.takeFound() == .found)
        #expect(reach.takeFound() == nil)
        #expect(reach.look(isWaiting: false, at: at(9)) == nil)
    }

    /// A run that paused itself looks again within minutes; one that was cancelled never.
    @Test func `is forgotten when nobody looks any more`() {
        var reach = EndpointReach()
        for second in [0, 3, 6] { _ = reach.look(isWaiting: true, at: at(second)) }
        #expect(reach.outage(at: at(300).uptime) == Self.noon)
        #expect(reach.outage(at: at(600).uptime) == nil)
    }
}
