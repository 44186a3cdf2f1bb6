import HummingbirdCore
import Logging
package import NIOCore
package import NIOHTTPTypes
import Synchronization

package typealias HTTPConnection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

/// A connection between its acceptance and its handling.
///
/// A stopping server drops connections that it has accepted but does not handle yet. NIO ends the process if such a
/// channel is dropped, so this class closes the channel instead.
package final class AcceptedConnection: ServerChildChannelValue {
    private let connection: HTTPConnection
    private let isTaken = Atomic(false)

    package init(_ connection: HTTPConnection) {
        self.connection = connection
    }

    deinit {
        guard !isTaken.load(ordering: .relaxed) else { return }
        // Closing is asynchronous, and a `deinit` cannot wait for it.
        Task { [connection] in try? await connection.executeThenClose { _, _ in } }
    }

    package var channel: any Channel { connection.channel }

    /// Hands the connection to its handler, which closes it.
    func takeConnection() -> HTTPConnection {
        isTaken.store(true, ordering: .relaxed)
        return connection
    }
}

/// A handler for HTTP/1.1 connections that may be dropped before they are handled.
struct ConnectionHandler: ServerChildChannel {
    let http: HTTP1Channel

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<AcceptedConnection> {
        http.setup(channel: channel, logger: logger).map { AcceptedConnection($0) }
    }

    func handle(value: AcceptedConnection, logger: Logger) async {
        await http.handle(value: value.takeConnection(), logger: logger)
    }
}
