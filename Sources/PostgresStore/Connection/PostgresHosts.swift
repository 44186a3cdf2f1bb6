import Model
import Synchronization

/// The hosts of an address, with the host that every new connection tries first. All pools of a store share it, so
/// that a host that does not respond costs only one connection its time.
final class PostgresHosts: Sendable {
    private struct State {
        var first = 0
        var hasOpened = false
    }

    let address: PostgresAddress
    private let state = Mutex(State())

    init(_ address: PostgresAddress) { self.address = address }

    /// Whether any connection was opened.
    var hasOpened: Bool { state.withLock { $0.hasOpened } }

    /// The numbers of all hosts in the order in which a new connection tries them.
    var order: [Int] {
        let first = state.withLock { $0.first }
        return Array(first..<address.hosts.count) + Array(0..<first)
    }

    /// Lets the next connections begin with this host.
    func noteOpened(_ number: Int) { state.withLock { $0 = State(first: number, hasOpened: true) } }

    /// Lets the next connections begin with the host after this one, if they would begin with this one.
    func noteSilent(_ number: Int) {
        state.withLock { state in
            if state.first == number { state.first = (number + 1) % address.hosts.count }
        }
    }
}
