import Hummingbird
import NIOCore
import ServiceLifecycle

/// A request's context, with the connection on which the request arrived.
struct WebContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The IP address of the client, such as `127.0.0.1` or `::1`. Empty if the kernel does not report it.
    var clientAddress: String { channel.remoteAddress?.ipAddress ?? "" }
}

extension WebContext {
    /// Performs long work while the client stays connected, and cancels it when the client leaves.
    ///
    /// This method does not read the request's body. If the server's buffers for the body are full, the server notices
    /// that the client has left only when a write fails.
    func whileClientStays<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let presence = try await clientPresence()
        // The connection is already closed.
        guard let presence else { throw CancellationError() }
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await work() }
            group.addTask {
                for await _ in presence {}
                throw CancellationError()
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// Records that a caller on this connection is authenticated.
    func becameKnown() {
        channel.eventLoop.execute { [channel] in
            try? channel.pipeline.syncOperations.handler(type: ProgressHandler.self).becameKnown()
        }
    }

    /// Returns when the client has left or the server is told to stop. Reads that serve only this client are cancelled
    /// then.
    func untilUnwanted() async {
        guard let presence = try? await clientPresence() else { return }
        await cancelWhenGracefulShutdown { for await _ in presence {} }
    }

    /// Returns a stream that ends when the client leaves, or `nil` if the connection is already closed.
    private func clientPresence() async throws -> AsyncStream<Never>? {
        try await channel.eventLoop.submit { [channel] in
            try? channel.pipeline.syncOperations.handler(type: ProgressHandler.self).untilClientLeaves()
        }.get()
    }
}
