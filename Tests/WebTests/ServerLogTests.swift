import Logging
import SendingScene
import Testing

@testable import Web

/// The log of the server library, as the daemon writes it.
@Suite struct ServerLogTests {
    @Test func `what the library says of its own end is no line of the log`() {
        let lines = CollectedLines()
        var logger = lines.logger()
        logger.handler = ServerLogHandler(logger.handler)
        logger.error("Server shutdown error: Already closed")
        logger.error("Waiting on child channel: CancellationError()")
        logger.error("another one")
        #expect(lines.all.map(\.message) == ["another one"])
    }
}
