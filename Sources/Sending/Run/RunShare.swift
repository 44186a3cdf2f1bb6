import Model
import Store
import Synchronization

/// This sender's share of a run that several senders send: its leases, its speed, and the other participants.
///
/// Decides whether the sender may lease, how much it leases, and when it releases deliveries that it has not started.
/// Also finds leases under the sender's name that the sender does not know. Limits a sender only in a store that
/// several machines share.
final class RunShare: Sendable {
    private struct State {
        var held = HeldLeases()
        var pace = HeartbeatPace()
        /// `nil` before the first check of the other senders.
        var participants: RunParticipants?
        var settled = 0
        /// The uptime and the number of settled deliveries at the last check.
        var looked: (at: Duration, settled: Int)?
        /// The pushes per second between the last two checks.
        var rate: Double?
        var recalledAt: Duration?
        /// The number of consecutive checks at which another sender of the run had nothing to send.
        var idleLooks = 0
    }

    /// The minimum number of idle checks before a recall. A sender that has just joined gets its first lease before the
    /// second check.
    private static let idleLooksMin = 2
    /// The minimum time between two recalls, in which other senders lease the released deliveries.
    private static let recallEvery: Duration = .seconds(2)
    /// How long this sender leaves the deliveries it released to other senders, which check for them once a second.
    private static let leavesFor: Duration = .seconds(3)
    /// A sender that is too slow leaves the run after this long.
    private static let slowMax: Duration = .seconds(5)

    private let state = Mutex(State())
    /// Whether another sender leads the run.
    private let isJoined: Bool

    init(isJoined: Bool = false) { self.isJoined = isJoined }

    // MARK: Leases

    func beginLease() -> UInt64 { state.withLock { $0.held.begin() } }

    /// - Parameter lease: `nil` if the call failed.
    func endLease(_ call: UInt64, _ lease: Lease?) { state.withLock { $0.held.end(call, lease) } }

    /// Records that the store has these outcomes.
    func settled(_ settlements: [Settlement]) {
        state.withLock { state in
            state.settled += settlements.count
            state.held.settled(settlements)
        }
    }

    // MARK: Speed

    /// Records how long the store took to respond to a heartbeat. Returns whether the heartbeats are now too slow, or
    /// `nil` if that has not changed.
    func note(beat duration: Duration, at uptime: Duration) -> Bool? {
        state.withLock { $0.pace.note(duration, at: uptime) ? $0.pace.isTooSlow : nil }
    }

    /// Whether the sender may lease: its heartbeats are fast enough, or those of no other participant are.
    var mayLease: Bool {
        state.withLock { state in
            guard let isTooSlow = state.pace.isTooSlow else { return !isJoined }
            return !isTooSlow || !(state.participants.map { $0.fit > 0 } ?? isJoined)
        }
    }

    /// Whether this sender leaves the run, because its heartbeats are too slow and another participant's are fast
    /// enough.
    func isToLeave(at uptime: Duration) -> Bool {
        state.withLock { state in
            guard let since = state.pace.since, let participants = state.participants, participants.fit > 0 else {
                return false
            }
            return uptime - since >= Self.slowMax
        }
    }

    /// Returns the size of the next lease. 0 means that the remaining deliveries are for other senders.
    ///
    /// - Parameter held: the number of deliveries that this sender has leased and not settled.
    func leaseSize(atMost most: Int, _ counts: DeliveryCounts, held: Int, at uptime: Duration) -> Int {
        state.withLock { state in
            let size = LeaseShare.size(
                atMost: most, pending: counts.pending, senders: 1 + (state.participants?.fit ?? 0), rate: state.rate)
            guard let recalledAt = state.recalledAt, uptime - recalledAt < Self.leavesFor, let rate = state.rate else {
                return size
            }
            return min(size, max(0, LeaseShare.enough(rate: rate) - held))
        }
    }

    // MARK: Others

    /// The actions that follow from a check of the other senders.
    struct Look: Hashable {
        /// Leases under the sender's name that it does not know.
        var forgotten: Set<Int64> = []
        /// Whether the sender releases the deliveries it has not started, because other senders have nothing to send.
        var isRecall = false
    }

    /// Records the other participants of the run, and returns the actions to take.
    ///
    /// - Parameters:
    ///   - held: the number of deliveries that this sender has leased and not settled.
    ///   - pending: the number of deliveries that no sender has leased.
    func look(_ participants: RunParticipants, held: Int, pending: Int, at uptime: Duration) -> Look {
        state.withLock { state in
            state.participants = participants
            state.idleLooks = participants.idle > 0 ? state.idleLooks + 1 : 0
            if let last = state.looked, uptime > last.at {
                state.rate = Double(state.settled - last.settled) / (uptime - last.at).inSeconds
            }
            state.looked = (uptime, state.settled)
            var look = Look(forgotten: state.held.forgotten(participants.leases))
            let isDue = state.recalledAt.map { uptime - $0 >= Self.recallEvery } ?? true
            // If at least as many deliveries are pending as held, other senders are idle for another reason.
            let isWanted = state.idleLooks >= Self.idleLooksMin && pending < held && isDue
            if isWanted, let rate = state.rate, LeaseShare.isTooMuch(held: held, rate: rate) {
                state.recalledAt = uptime
                look.isRecall = true
            }
            return look
        }
    }
}

/// The leases that a sender holds, and those under its name in the store that it does not know.
///
/// A server that takes over from another one may lack the last seconds of writes. In its records, deliveries settled in
/// these seconds are still leased by a living sender, which no longer holds that lease. A lease is forgotten if two
/// checks found it and no outstanding lease call can still return it.
struct HeldLeases {
    private var nextCall: UInt64 = 0
    private var calls: Set<UInt64> = []
    /// The number of deliveries without a recorded outcome, by lease.
    private var open: [Int64: Int] = [:]
    /// Leases found in the store but not held, with the number of the first call that cannot have created them.
    private var unknown: [Int64: UInt64] = [:]

    mutating func begin() -> UInt64 {
        defer { nextCall += 1 }
        calls.insert(nextCall)
        return nextCall
    }

    mutating func end(_ call: UInt64, _ lease: Lease?) {
        calls.remove(call)
        guard let lease, !lease.deliveries.isEmpty else { return }
        open[lease.id] = lease.deliveries.count
        unknown[lease.id] = nil
    }

    mutating func settled(_ settlements: [Settlement]) {
        var start = settlements.startIndex
        // Consecutive settlements mostly belong to one lease.
        while start < settlements.endIndex {
            let lease = settlements[start].lease
            let end = settlements[start...].firstIndex { $0.lease != lease } ?? settlements.endIndex
            if let count = open[lease] { open[lease] = count > end - start ? count - (end - start) : nil }
            start = end
        }
    }

    /// Returns the forgotten leases among `found`, which the store lists under the sender's name.
    mutating func forgotten(_ found: Set<Int64>) -> Set<Int64> {
        var forgotten: Set<Int64> = []
        var unknown: [Int64: UInt64] = [:]
        for lease in found where open[lease] == nil {
            let behind = self.unknown[lease] ?? nextCall
            if self.unknown[lease] != nil, calls.allSatisfy({ $0 >= behind }) { forgotten.insert(lease) }
            unknown[lease] = behind
        }
        self.unknown = unknown
        return forgotten
    }
}
