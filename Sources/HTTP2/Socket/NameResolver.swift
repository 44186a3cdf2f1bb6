import Synchronization

/// Looks up names with the system's resolver. A look-up blocks for many seconds if the network is down, and cannot be
/// cancelled. Any thread may use this type.
///
/// Each look-up has its own thread, which retains no caller that has cancelled its ticket. Callers for the same host
/// and port share a look-up, so that repeated attempts leave few hanging threads.
package final class NameResolver: Sendable {
    /// The maximum number of concurrent look-ups for one host and port.
    package static let threadsMax = 4
    /// The time for which callers share a look-up. A later caller starts a new one within ``threadsMax``, because the
    /// old one may hang.
    private static let sharedForNanoseconds: UInt64 = 5_000_000_000

    typealias Found = Result<[SocketAddress], SocketAddress.ResolveFault>
    typealias LookUp = @Sendable (_ host: String, _ port: Int) -> Found

    private struct Key: Hashable {
        var host: String
        var port: Int
    }

    private struct Flight {
        var key: Key
        var startedAt: UInt64
        var waiters: [Int: @Sendable (Found) -> Void] = [:]
    }

    private struct State {
        var flights: [Int: Flight] = [:]
        var next = 0
    }

    /// A caller's place in a look-up, which the caller may cancel.
    struct Ticket: Sendable {
        fileprivate let resolver: NameResolver
        fileprivate let flight: Int
        fileprivate let waiter: Int

        /// Drops the caller's closure, unless the look-up is already calling it.
        func cancel() {
            // The closure is released outside the lock.
            _ = resolver.state.withLock { $0.flights[flight]?.waiters.removeValue(forKey: waiter) }
        }
    }

    package static let system = NameResolver { host, port in
        Result { () throws(SocketAddress.ResolveFault) in try SocketAddress.resolve(host: host, port: port) }
    }

    private let lookUp: LookUp
    private let now: @Sendable () -> UInt64
    private let state = Mutex(State())

    /// - Parameter now: nanoseconds of a clock that cannot be set.
    init(now: @escaping @Sendable () -> UInt64 = EventLoop.monotonicNanoseconds, lookUp: @escaping LookUp) {
        self.now = now
        self.lookUp = lookUp
    }

    /// The number of look-ups that have not returned.
    var threads: Int { state.withLock { $0.flights.count } }

    /// Calls `take` once, on the look-up's thread, unless the ticket is cancelled before. If the system provides no
    /// thread, calls `take` with a failure immediately, and returns `nil`.
    func resolve(host: String, port: Int, _ take: @escaping @Sendable (Found) -> Void) -> Ticket? {
        let key = Key(host: host, port: port)
        let now = now()
        let (ticket, isNew) = state.withLock { state in
            state.next += 1
            let waiter = state.next
            let flights = state.flights.filter { $0.value.key == key }
            let newest = flights.max { $0.key < $1.key }
            let isShared = newest.map { now - $0.value.startedAt < Self.sharedForNanoseconds } ?? false
            if let newest, isShared || flights.count >= Self.threadsMax {
                state.flights[newest.key]?.waiters[waiter] = take
                return (Ticket(resolver: self, flight: newest.key, waiter: waiter), false)
            }
            state.flights[waiter] = Flight(key: key, startedAt: now, waiters: [waiter: take])
            return (Ticket(resolver: self, flight: waiter, waiter: waiter), true)
        }
        guard isNew else { return ticket }
        let isStarted = LoopThread.runDetached(named: "resolver") { [self, lookUp] in
            finish(ticket.flight, lookUp(host, port))
        }
        if isStarted { return ticket }
        // Other callers may have joined in the meantime.
        finish(
            ticket.flight,
            .failure(
                SocketAddress.ResolveFault(reason: "the system cannot start another thread; raise the limit of threads")
            ))
        return nil
    }

    private func finish(_ flight: Int, _ found: Found) {
        let waiters = state.withLock { $0.flights.removeValue(forKey: flight)?.waiters } ?? [:]
        for take in waiters.values { take(found) }
    }
}
