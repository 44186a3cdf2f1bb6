import Model
import Store
import Synchronization

/// This sender's share of a run that several senders send: which leases it holds, how fast it is, and who else is there.
///
/// It says whether the sender may lease, how much, when it is to give back what it has not started, and which leases
/// stand under its name that it has forgotten. In a store of one machine it never limits anything.
final class RunShare: Sendable {
    private struct State {
        var held = HeldLeases()
        var pace = HeartbeatPace()
        /// `nil` before the first look.
        var company: RunCompany?
        var settled = 0
        /// At the last look, by the uptime.
        var looked: (at: Duration, settled: Int)?
        /// Pushes a second between the last two looks.
        var rate: Double?
        var recalledAt: Duration?
        /// Looks in a row at which another sender of the run had nothing to send.
        var idleLooks = 0
    }

    /// A sender that has just joined leases within a look.
    private static let idleLooksMin = 2
    /// Between two recalls: what was given back is leased by others meanwhile.
    private static let recallEvery: Duration = .seconds(2)
    /// How long the sender leaves to others what it gave back, which they look for once a second.
    private static let leavesFor: Duration = .seconds(3)
    /// A sender that is too slow leaves the run after this long.
    private static let slowMax: Duration = .seconds(5)

    private let state = Mutex(State())
    /// Another sender leads the run.
    private let isJoined: Bool

    init(isJoined: Bool = false) { self.isJoined = isJoined }

    // MARK: Leases

    func beginLease() -> UInt64 { state.withLock { $0.held.begin() } }

    /// - Parameter lease: `nil` if the call failed.
    func endLease(_ call: UInt64, _ lease: Lease?) { state.withLock { $0.held.end(call, lease) } }

    /// These outcomes are recorded in the store.
    func settled(_ settlements: [Settlement]) {
        state.withLock { state in
            state.settled += settlements.count
            state.held.settled(settlements)
        }
    }

    // MARK: Speed

    /// Records how long the store took to answer a heartbeat. Returns a change of ``isTooSlow``.
    func note(beat duration: Duration, at uptime: Duration) -> Bool? {
        state.withLock { $0.pace.note(duration, at: uptime) ? $0.pace.isTooSlow : nil }
    }

    /// Whether the sender may lease: its heartbeats are fast enough, or no other sender of the run is faster.
    var mayLease: Bool {
        state.withLock { state in
            guard let isTooSlow = state.pace.isTooSlow else { return !isJoined }
            return !isTooSlow || !(state.company.map { $0.fit > 0 } ?? isJoined)
        }
    }

    /// Whether the sender is to leave the run to others that are faster.
    func isToLeave(at uptime: Duration) -> Bool {
        state.withLock { state in
            guard let since = state.pace.since, let company = state.company, company.fit > 0 else { return false }
            return uptime - since >= Self.slowMax
        }
    }

    /// Returns the size of the next lease; 0: what is left is for others.
    ///
    /// - Parameter held: the deliveries that this sender has leased and not settled.
    func leaseSize(atMost most: Int, _ counts: DeliveryCounts, held: Int, at uptime: Duration) -> Int {
        state.withLock { state in
            let size = LeaseShare.size(
                atMost: most, pending: counts.pending, senders: 1 + (state.company?.fit ?? 0), rate: state.rate)
            guard let recalledAt = state.recalledAt, uptime - recalledAt < Self.leavesFor, let rate = state.rate else {
                return size
            }
            return min(size, max(0, LeaseShare.enough(rate: rate) - held))
        }
    }

    // MARK: Others

    /// What a look at the others is to lead to.
    struct Look: Hashable {
        /// Leases under the sender's name that it has forgotten.
        var forgotten: Set<Int64> = []
        /// What the sender has not started is to be given back: others have nothing to send.
        var isRecall = false
    }

    /// Records who else is at the run.
    ///
    /// - Parameters:
    ///   - held: the deliveries that this sender has leased and not settled.
    ///   - pending: those that no sender has leased.
    func look(_ company: RunCompany, held: Int, pending: Int, at uptime: Duration) -> Look {
        state.withLock { state in
            state.company = company
            state.idleLooks = company.idle > 0 ? state.idleLooks + 1 : 0
            if let last = state.looked, uptime > last.at {
                state.rate = Double(state.settled - last.settled) / (uptime - last.at).inSeconds
            }
            state.looked = (uptime, state.settled)
            var look = Look(forgotten: state.held.forgotten(company.leases))
            let isDue = state.recalledAt.map { uptime - $0 >= Self.recallEvery } ?? true
            // While more is pending than held, others are idle for another reason.
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
/// A server that takes over from another one may lack the last seconds: what was settled then is leased again, under the
/// name of a sender that lives and has forgotten it. A lease that was seen twice, and that no call can still bring, is such
/// a one.
struct HeldLeases {
    private var nextCall: UInt64 = 0
    private var calls: Set<UInt64> = []
    /// The deliveries of each lease without a recorded outcome.
    private var open: [Int64: Int] = [:]
    /// Leases seen in the store and not held, with the first call that cannot have made them.
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
        // Settlements that follow one another are mostly of one lease.
        while start < settlements.endIndex {
            let lease = settlements[start].lease
            let end = settlements[start...].firstIndex { $0.lease != lease } ?? settlements.endIndex
            if let count = open[lease] { open[lease] = count > end - start ? count - (end - start) : nil }
            start = end
        }
    }

    /// Returns the forgotten ones of the leases that the store has under the sender's name.
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
