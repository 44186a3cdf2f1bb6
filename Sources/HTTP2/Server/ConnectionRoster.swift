import Synchronization

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
