import Hummingbird
import NIOCore
import ServiceLifecycle

/// A request's context that knows its connection, and who asks once that is found out.
struct WebContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// Where the connection comes from, `127.0.0.1` or `::1`; empty where the kernel does not say.
    var clientAddress: String { channel.remoteAddress?.ipAddress ?? "" }
}

extension WebContext {
    /// Does what takes long for as long as somebody waits for it: it is cancelled when the client has left.
    ///
    /// What is in the request's body is not looked at. A client that sends more than is taken from it while the answer is
    /// made has left once nothing can be written to it.
    func whileClientStays<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let presence = try await clientPresence()
        // The connection is gone already.
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

    /// For the server: a caller on this connection has proved who they are.
    func becameKnown() {
        channel.eventLoop.execute { [channel] in
            try? channel.pipeline.syncOperations.handler(type: ProgressHandler.self).becameKnown()
        }
    }

    /// Returns when the client has left, or the server is told to stop: what is read for the client alone ends then.
    func untilUnwanted() async {
        guard let presence = try? await clientPresence() else { return }
        await cancelWhenGracefulShutdown { for await _ in presence {} }
    }

    /// Ends when the client leaves; nil: the connection is gone already.
    private func clientPresence() async throws -> AsyncStream<Never>? {
        try await channel.eventLoop.submit { [channel] in
            try? channel.pipeline.syncOperations.handler(type: ProgressHandler.self).untilClientLeaves()
        }.get()
    }
}
