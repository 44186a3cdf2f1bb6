import Model
import Synchronization

/// The hosts of an address, with the host that every new connection tries first. All pools of a store share it, so
/// that a host that does not respond costs only one connection its time.
final class PostgresHosts: Sendable {
    private struct State {
        var first = 0
        var hasOpened = false
        var refusal: (error: PostgresError, at: ContinuousClock.Instant)?
    }

    private struct Sibling {
        weak var queue: PostgresQueue?
    }

    let address: PostgresAddress
    private let state = Mutex(State())
    private let siblings = Mutex<[Sibling]>([])

    init(_ address: PostgresAddress) { self.address = address }

    /// Whether any connection was opened.
    var hasOpened: Bool { state.withLock { $0.hasOpened } }

    /// The numbers of all hosts in the order in which a new connection tries them.
    var order: [Int] {
        let first = state.withLock { $0.first }
        return Array(first..<address.hosts.count) + Array(0..<first)
    }

    /// The time for which a refusal is shown. A server that stops refusing is noticed only by the next connection that
    /// is needed.
    private static let refusalShownFor: Duration = .seconds(600)

    /// Why the server has lately refused a connection while others were open; `nil` if it has accepted one since.
    var refusal: PostgresError? {
        state.withLock { state in
            state.refusal.flatMap { .now - $0.at < Self.refusalShownFor ? $0.error : nil }
        }
    }

    /// Lets the queue give up idle connections for other queues of the process.
    func register(_ queue: PostgresQueue) {
        siblings.withLock { siblings in
            siblings.removeAll { $0.queue == nil }
            siblings.append(Sibling(queue: queue))
        }
    }

    /// Closes an idle connection of another queue, because the server accepts no further one. The latest queues have
    /// the least urgent work.
    func makeRoom(for asking: PostgresQueue) {
        let queues = siblings.withLock { $0.compactMap(\.queue) }
        _ = queues.reversed().first { $0 !== asking && $0.giveUpIdle() }
    }

    func noteRefused(_ error: PostgresError) { state.withLock { $0.refusal = (error, .now) } }

    /// Lets the next connections begin with this host.
    func noteOpened(_ number: Int) { state.withLock { $0 = State(first: number, hasOpened: true) } }

    /// Lets the next connections begin with the host after this one, if they would begin with this one.
    func noteSilent(_ number: Int) {
        state.withLock { state in
            if state.first == number { state.first = (number + 1) % address.hosts.count }
        }
    }
}
