import Glibc
import Synchronization

/// One listening port whose connections speak HTTP/2 over TLS, spread over some loops in turn.
package final class HTTP2Listener: Sendable {
    /// What becomes of a connection that was accepted.
    package enum Admission: Sendable {
        case serve
        /// Closed before TLS is agreed.
        case drop
        /// Kept and never answered, not even in TLS.
        case ignore
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
        let turns = Turns(count: loops.count)
        let roster = ConnectionRoster()
        let socket = try ListeningSocket(host: host, port: port, loop: loops[0]) { descriptor in
            let loop = loops[turns.next()]
            let number = numbers.next()
            let admission = admit()
            guard case .drop = admission else {
                return loop.perform(isOnLoop: loop === loops[0]) {
                    let connection = ServerConnection(
                        socket: descriptor, number: number, tls: tls, settings: settings, loop: loop)
                    if case .ignore = admission { return connection.startSilent() }
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

    /// Refuses connects for a while.
    package func refuse(milliseconds: Int) {
        let (socket, loop) = (socket, loop)
        loop.submit {
            socket.value.refuse()
            loop.schedule(afterMilliseconds: milliseconds, target: Resumption(socket.value), tag: 0)
        }
    }

    /// Ends every connection of this port without a word.
    package func endConnections() {
        roster.abortAll()
    }
}

/// Reopens a port when its time has come. The loop's thread only.
private final class Resumption: TimerTarget {
    private let socket: ListeningSocket

    init(_ socket: ListeningSocket) {
        self.socket = socket
    }

    func timerFired(_ tag: Int64) {
        socket.resume()
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

/// Whose turn it is. One thread.
private final class Turns {
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
