import NIOCore
import Synchronization

/// The open connections of a server, and the time since which the server waits for each client.
///
/// A crowded server admits a new connection and closes another one, whose client keeps the server waiting. It chooses
/// that connection by these criteria, in this order:
///
/// 1. It has no authenticated caller.
/// 2. Its address has the most connections.
/// 3. It has kept the server waiting longest.
///
/// Clients that send half a request and then stall therefore displace each other. A client is not displaced while the
/// server works on its complete request.
///
/// Behind a proxy every connection has the proxy's address, so the proxy has to limit the connections of each client.
final class ConnectionTable: Sendable {
    struct Connection {
        var address: String
        /// The time since which the server waits for the client. `nil` if the client waits for the server.
        var waitsSince: Duration?
        /// Whether a caller on this connection is authenticated.
        var isKnown = false
        var close: @Sendable () -> Void

    }

    /// Whether an address is this machine's own, where health checks come from.
    static func isLocal(_ address: String) -> Bool {
        address.hasPrefix("127.") || address == "::1" || address.hasPrefix("::ffff:127.")
    }

    private struct State {
        var connections: [Int: Connection] = [:]
        var lastID = 0
    }

    private let crowdedAt: Int
    private let state = Mutex(State())

    /// - Parameter crowdedAt: the number of open connections from which a new one displaces another.
    init(crowdedAt: Int) { self.crowdedAt = crowdedAt }

    /// Returns the connection's number, or `nil` if there is no room and the caller must close the connection. If no
    /// other connection can be closed, only connections from this machine are admitted beyond the limit.
    func admit(_ connection: Connection) -> Int? {
        let (id, leaving) = state.withLock { state -> (Int?, Connection?) in
            var leaving: Connection?
            if state.connections.count >= crowdedAt {
                let victim = Self.victim(among: state.connections)
                guard victim != nil || Self.isLocal(connection.address) else { return (nil, nil) }
                leaving = victim.flatMap { state.connections.removeValue(forKey: $0) }
            }
            state.lastID += 1
            state.connections[state.lastID] = connection
            return (state.lastID, leaving)
        }
        leaving?.close()
        return id
    }

    func waits(_ id: Int, since moment: Duration?) {
        state.withLock { $0.connections[id]?.waitsSince = moment }
    }

    func becameKnown(_ id: Int) {
        state.withLock { $0.connections[id]?.isKnown = true }
    }

    func left(_ id: Int) {
        state.withLock { $0.connections[id] = nil }
    }

    private static func victim(among connections: [Int: Connection]) -> Int? {
        let byAddress = connections.values.reduce(into: [:]) { $0[$1.address, default: 0] += 1 }
        let waiting = connections.filter { $0.value.waitsSince != nil }
        let unknown = waiting.filter { !$0.value.isKnown }
        return (unknown.isEmpty ? waiting : unknown).min { one, other in
            let (first, second) = (one.value, other.value)
            let (ofFirst, ofSecond) = (byAddress[first.address, default: 0], byAddress[second.address, default: 0])
            if ofFirst != ofSecond { return ofFirst > ofSecond }
            return (first.waitsSince ?? .zero, one.key) < (second.waitsSince ?? .zero, other.key)
        }?.key
    }
}
