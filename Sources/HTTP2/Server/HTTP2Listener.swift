import Glibc
import Synchronization

/// One listening port for HTTP/2 over TLS. Its connections are distributed over several loops in turn.
package final class HTTP2Listener: Sendable {
    /// The treatment of an accepted connection.
    package enum Admission: Sendable {
        case serve
        /// The connection is closed before the TLS handshake.
        case close
        /// The connection is kept open and read. Nothing is ever written to it, not even in the TLS handshake.
        case stall
    }

    /// The socket, bound in `init`, so that the port is known. From ``listen()`` on, only the loop's thread uses it.
    private let socket: LoopConfined<ListeningSocket>
    private let loop: EventLoop
    private let roster: ConnectionRoster
    package let port: Int

    /// Binds the port. `admit` is called for every connection, on the first loop. `makeHandler` is called on the
    /// connection's loop. Several listeners may share `numbers`, which supplies the connection numbers.
    package init(
        host: String, port: Int, loops: [EventLoop], tls: TLSContext, settings: ServerSettings,
        numbers: ConnectionNumbers, admit: @escaping @Sendable () -> Admission = { .serve },
        makeHandler: @escaping @Sendable (ServerConnection) -> any RequestHandler
    ) throws(SocketError) {
        loop = loops[0]
        let roundRobin = RoundRobin(count: loops.count)
        let roster = ConnectionRoster()
        let socket = try ListeningSocket(host: host, port: port, loop: loops[0]) { descriptor in
            let loop = loops[roundRobin.next()]
            let number = numbers.next()
            let admission = admit()
            guard case .close = admission else {
                return loop.perform(isOnLoop: loop === loops[0]) {
                    let connection = ServerConnection(
                        socket: descriptor, number: number, tls: tls, settings: settings, loop: loop)
                    if case .stall = admission { return connection.startSilent() }
                    roster.add(connection, on: loop)
                    connection.start(makeHandler(connection))
                }
            }
            Glibc.close(descriptor)
        }
        self.port = socket.port
        self.socket = LoopConfined(socket)
        self.roster = roster
    }

    /// Starts to accept connections, once the loops have been started.
    package func listen() {
        let socket = socket
        loop.submit { socket.value.listen() }
    }

    /// Makes the port refuse connects until ``resume()``. The port stays bound. `done` is called on the first loop.
    package func refuse(done: @escaping @Sendable () -> Void = {}) {
        let socket = socket
        loop.submit {
            socket.value.refuse()
            done()
        }
    }

    /// Accepts connects again.
    package func resume() {
        let socket = socket
        loop.submit { socket.value.resume() }
    }

    /// Closes every served connection of this port with no GOAWAY, except connections that have fallen silent.
    package func endConnections() {
        roster.abortAll()
    }
}

/// A source of unique connection numbers.
package final class ConnectionNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    /// Returns the next number, from 1.
    package func next() -> UInt64 {
        last.add(1, ordering: .relaxed).newValue
    }
}

/// Returns the numbers below `count` in turn. Only one thread may use it.
private final class RoundRobin {
    private let count: Int
    private var last = -1

    init(count: Int) {
        self.count = count
    }

    func next() -> Int {
        last = (last + 1) % count
        return last
    }
}

/// The served connections of one listener, so that all of them can be ended.
final class ConnectionRoster: Sendable {
    private struct Member: Sendable {
        let loop: EventLoop
        let connection: LoopConfined<ServerConnection>
    }

    private let members = Mutex<[UInt64: Member]>([:])

    /// Adds a connection, on the connection's loop. The connection is removed when it ends.
    func add(_ connection: ServerConnection, on loop: EventLoop) {
        let member = Member(loop: loop, connection: LoopConfined(connection))
        let number = connection.number
        members.withLock { $0[number] = member }
        connection.onEnd = { [weak self] in
            self?.members.withLock { $0[number] = nil }
        }
    }

    /// Aborts all connections. Any thread may call it.
    func abortAll() {
        for member in members.withLock({ Array($0.values) }) {
            member.loop.submit { member.connection.value.abort() }
        }
    }
}
