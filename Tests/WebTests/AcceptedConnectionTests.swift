import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct AcceptedConnectionTests {
    @Test func `a connection that is dropped before it is handled is closed, and the process lives`() async throws {
        let channel = NIOAsyncTestingChannel()
        let opened = try await channel.eventLoop.submit {
            AcceptedConnection(
                try HTTPConnection(
                    wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)))
        }.map { accepted in accepted.channel === channel }.get()
        #expect(opened)
        try await channel.closeFuture.get()
    }
}
