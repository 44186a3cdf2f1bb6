import Glibc
import Synchronization

/// One listening port whose connections speak HTTP/2 over TLS, spread over some loops in turn.
package final class HTTP2Listener: Sendable {
    /// What becomes of a connection that was accepted.
    package enum Admission: Sendable {
        case serve
        /// Closed before the TLS handshake.
        case close
        /// Kept open and read, and nothing is ever written to it, not even in the TLS handshake.
        case stall
    }

    /// Bound when made, so that the port is known; the loop's thread takes it up in ``listen()``.
    private let socket: LoopConfined<ListeningSocket>
    private let loop: EventLoop
    private let roster: ConnectionRoster
    package let port: Int

    /// `admit` is asked for every connection, on the first loop; `makeHandler` is called on the connection's loop.
    /// Connection numbers come from `numbers`, which several listeners may share.
    package init(
        host: String, port: Int, loops: [EventLoop], tls: TLSContext, settings: ServerSettings,
        numbers: ConnectionNumbers, admit: @escaping @Sendable () -> Admission = { .serve },
        makeHandler: @escaping @Sendable (ServerConnection) -> any RequestHandler
    ) throws(SocketError) {
        loop = loops[0]
        let turns = RoundRobin(count: loops.count)
        let roster = ConnectionRoster()
        let socket = try ListeningSocket(host: host, port: port, loop: loops[0]) { descriptor in
            let loop = loops[turns.next()]
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

    /// Starts accepting. The loops must have been started, or be started soon.
    package func listen() {
        let socket = socket
        loop.submit { socket.value.listen() }
    }

    /// Connects are refused from soon on, until ``resume()``; the port stays ours. `done` is called on the loop.
    package func refuse(done: @escaping @Sendable () -> Void = {}) {
        let socket = socket
        loop.submit {
            socket.value.refuse()
            done()
        }
    }

    /// Takes connects again.
    package func resume() {
        let socket = socket
        loop.submit { socket.value.resume() }
    }

    /// Closes every connection of this port, without GOAWAY.
    package func endConnections() {
        roster.abortAll()
    }
}

/// Numbers connections, each number once.
package final class ConnectionNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    package init() {}

    /// From 1.
    package func next() -> UInt64 {
        last.add(1, ordering: .relaxed).newValue
    }
}

/// Numbers below `count` in turn. One thread.
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

/// The living connections of one listener, so that all of them can be ended.
final class ConnectionRoster: Sendable {
    private struct Member: Sendable {
        let loop: EventLoop
        let connection: LoopConfined<ServerConnection>
    }

    private let members = Mutex<[UInt64: Member]>([:])

    /// On the connection's loop; it leaves by itself when it ends.
    func add(_ connection: ServerConnection, on loop: EventLoop) {
        let member = Member(loop: loop, connection: LoopConfined(connection))
        let number = connection.number
        members.withLock { $0[number] = member }
        connection.onEnd = { [weak self] in
            self?.members.withLock { $0[number] = nil }
        }
    }

    /// Any thread.
    func abortAll() {
        for member in members.withLock({ Array($0.values) }) {
            member.loop.submit { member.connection.value.abort() }
        }
    }
}
