import Model
@testable import Sending
import Store
import Testing

@Suite struct `The share of a sender in a run` {
    private static func lease(_ id: Int64, _ devices: Range<Int64>) -> Lease {
        Lease(
            id: id,
            deliveries: devices.map { device in
                LeasedDelivery(
                    device: device, generation: 1, leaseNumber: 1, attempt: 1, excused: 0, token: [], locale: nil,
                    fields: [], badge: 0, isProven: true)
            }, cursor: 0)
    }

    private static func settlements(_ lease: Lease) -> [Settlement] {
        lease.deliveries.map {
            Settlement(
                lease: lease.id, device: $0.device, generation: 1, leaseNumber: 1, attempt: 1, verdict: .accepted)
        }
    }

    private static func participants(fit: Int = 0, idle: Int = 0, _ leases: Set<Int64> = []) -> RunParticipants {
        var participants = RunParticipants()
        (participants.others, participants.fit, participants.idle, participants.leases) = (fit, fit, idle, leases)
        return participants
    }

    private func expect(_ forgotten: Set<Int64>, _ held: inout HeldLeases, found: Set<Int64>) {
        let seen = held.forgotten(found)
        #expect(seen == forgotten)
    }

    @Test func `a lease that the store has again after it was settled is forgotten at the second look`() {
        var held = HeldLeases()
        let lease = Self.lease(7, 0..<10)
        held.end(held.begin(), lease)
        expect([], &held, found: [7])
        held.settled(Self.settlements(lease))
        expect([], &held, found: [7])
        expect([7], &held, found: [7])
        expect([], &held, found: [])
    }

    @Test func `a lease is not forgotten while something of it is open, or a call may still bring it`() {
        var held = HeldLeases()
        let lease = Self.lease(7, 0..<10)
        let call = held.begin()
        // The server has committed it, and its answer is on the way.
        for _ in 0..<5 { expect([], &held, found: [7]) }
        held.end(call, lease)
        expect([], &held, found: [7])
        held.settled(Array(Self.settlements(lease).dropLast()))
        for _ in 0..<3 { expect([], &held, found: [7]) }
    }

    @Test func `calls that began later do not keep a forgotten lease from being found`() {
        var held = HeldLeases()
        let before = held.begin()
        expect([], &held, found: [7])
        held.end(before, nil)
        _ = held.begin()
        expect([7], &held, found: [7])
    }

    @Test func `a sender that is too slow takes no leases while others are fast, and leaves after five seconds`() {
        let share = RunShare(isJoined: true)
        #expect(!share.mayLease)
        _ = share.note(beat: .milliseconds(20), at: .seconds(1))
        #expect(share.mayLease)
        for second in 2...3 { _ = share.note(beat: .milliseconds(1_500), at: .seconds(second)) }
        _ = share.look(Self.participants(fit: 2), held: 0, pending: 0, at: .seconds(3))
        #expect(!share.mayLease && !share.isToLeave(at: .seconds(7)) && share.isToLeave(at: .seconds(8)))
        // Where all are slow, somebody must send.
        _ = share.look(Self.participants(fit: 0), held: 0, pending: 0, at: .seconds(8))
        #expect(share.mayLease && !share.isToLeave(at: .seconds(20)))
    }

    @Test func `what is not started is given back when others stay idle and it lasts for seconds`() {
        let share = RunShare()
        let settled = Self.settlements(Self.lease(1, 0..<100))
        /// A hundred pushes a second.
        func isRecall(_ second: Int, idle: Int = 1, held: Int = 4_000, pending: Int = 0) -> Bool {
            share.settled(settled)
            return share.look(
                Self.participants(fit: 1, idle: idle), held: held, pending: pending, at: .seconds(second)
            ).isRecall
        }
        #expect((1...5).map { isRecall($0, idle: $0 == 3 ? 0 : 1) } == [false, true, false, false, true])
        // Others lease what was given back before the next time.
        #expect((6...7).map { isRecall($0) } == [false, true])
        #expect(!isRecall(10, pending: 5_000))
        #expect(!isRecall(12, held: 120))
        #expect(isRecall(14))
    }

    @Test func `what was given back is left to others for three seconds`() {
        let share = RunShare()
        for second in 1...2 {
            share.settled(Self.settlements(Self.lease(1, 0..<100)))
            _ = share.look(Self.participants(fit: 1, idle: 1), held: 4_000, pending: 0, at: .seconds(second))
        }
        var counts = DeliveryCounts()
        counts.pending = 3_800
        func size(held: Int, at uptime: Duration) -> Int {
            share.leaseSize(atMost: 1_000, counts, held: held, at: uptime)
        }
        // Two seconds of a hundred pushes each.
        #expect([0, 150, 200, 400].map { size(held: $0, at: .seconds(3)) } == [100, 50, 0, 0])
        #expect(size(held: 400, at: .milliseconds(4_900)) == 0)
        #expect(size(held: 400, at: .seconds(5)) == 100)
    }
}
