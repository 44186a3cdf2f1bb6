import Synchronization

/// One listening port whose connections speak HTTP/2 over TLS, spread over some loops in turn.
package final class HTTP2Listener: Sendable {
    /// Bound when made, so that the port is known; the loop's thread takes it up in ``listen()``.
    private let socket: LoopConfined<ListeningSocket>
    private let loop: EventLoop
    package let port: Int

    /// `makeHandler` is called on the connection's loop. Connection numbers come from `numbers`, which several listeners
    /// may share.
    package init(
        host: String, port: Int, loops: [EventLoop], tls: TLSContext, settings: ServerSettings,
        numbers: ConnectionNumbers, makeHandler: @escaping @Sendable (ServerConnection) -> any RequestHandler
    ) throws(SocketError) {
        loop = loops[0]
        let turns = Turns(count: loops.count)
        let socket = try ListeningSocket(host: host, port: port, loop: loops[0]) { descriptor in
            let loop = loops[turns.next()]
            let number = numbers.next()
            loop.perform(isOnLoop: loop === loops[0]) {
                let connection = ServerConnection(
                    socket: descriptor, number: number, tls: tls, settings: settings, loop: loop)
                connection.start(makeHandler(connection))
            }
        }
        self.port = socket.port
        self.socket = LoopConfined(socket)
    }

    /// Starts accepting. The loops must have been started, or be started soon.
    package func listen() {
        let socket = socket
        loop.submit { socket.value.listen() }
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

/// A value that is made on one thread and used on its loop's thread only.
private struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
