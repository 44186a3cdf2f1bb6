import Logging
import ServiceLifecycle
import Web

/// Metrics and health checks for as long as the daemon runs.
///
/// A port that is taken costs the metrics, not the broadcasts.
struct OperationsService: Service {
    private let server: HTTPServer
    private let logger: Logger
    private let listening: AsyncStream<Never>.Continuation
    /// Ends when the port is bound, or cannot be.
    let isSettled: AsyncStream<Never>

    init(server: HTTPServer, logger: Logger) {
        self.server = server
        self.logger = logger
        (isSettled, listening) = AsyncStream.makeStream(of: Never.self)
    }

    func run() async throws {
        do {
            try await server.run { [server, logger, listening] port in
                logger.info("metrics and health checks", metadata: ["address": "\(server.address(port: port))"])
                listening.finish()
            }
        } catch let error as ListenError {
            logger.error("no metrics and no health checks", metadata: ["error": "\(error)"])
            listening.finish()
            try await gracefulShutdown()
        }
    }
}
