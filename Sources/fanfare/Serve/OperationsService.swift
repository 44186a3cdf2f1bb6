import Dashboard
import ServiceLifecycle

/// Metrics and health checks for as long as the daemon runs.
struct OperationsService: Service {
    let server: OperationsServer

    func run() async throws {
        try await cancelWhenGracefulShutdown { try await server.run() }
    }
}
