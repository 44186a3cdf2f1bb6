import NIOCore
import Synchronization

/// The open connections of a server, and which of them wait for their clients.
///
/// A new connection is let in even if the server is crowded: the connection that has kept the server waiting longest
/// makes room. Connections on which no caller has proved who they are go first, and among these the ones of the address
/// that has most. Clients that send half a request and then nothing push out each other. A client that asks and reads is
/// never pushed out while the server works on its answer.
///
/// Behind a proxy every connection has the proxy's address: then the proxy has to limit what one client may open.
final class ConnectionTable: Sendable {
    struct Connection {
        var address: String
        /// Since when the server waits for the client; nil: the client waits for the server.
        var waitsSince: Duration?
        /// A caller on it has proved who they are.
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

    /// - Parameter crowdedAt: from this number of connections on a new one needs another's place.
    init(crowdedAt: Int) { self.crowdedAt = crowdedAt }

    /// Returns the connection's number; nil: there is no room, and it is to be closed. The places above the limit are for
    /// this machine's own connections.
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
