import Glibc
import Hummingbird
import HummingbirdCore
package import Logging
import NIOCore
import ServiceLifecycle

/// The HTTP side of a daemon: the pages, the API, and `/metrics`, `/healthz` and `/readyz` for machines.
///
/// `/healthz` reports whether the process does its work, and queries no store. `/readyz` reports whether requests can
/// be served now. Both return 503 and the reason if the answer is no. While APNs is unreachable, `/readyz` returns 200
/// and names the outage. A load balancer then keeps the pages in service for people who stop a campaign. `/metrics`
/// returns the text format of Prometheus. None of the three requires a token.
package struct HTTPServer: Sendable {
    /// The maximum size of a request's line and headers, in bytes. A larger request gets status 400, and the connection
    /// is closed.
    private static let headBytesMax = 8 * 1024

    private let host: String
    private let port: Int
    private let sources: OperationsSources
    private let webConsole: WebConsole?
    private let limits: ServerLimits
    private let logger: Logger

    /// - Parameters:
    ///   - host: an IP address of this machine.
    ///   - port: the port to bind, or 0 for a free one.
    ///   - webConsole: the pages and the API, or `nil` for neither.
    package init(
        host: String, port: Int, sources: OperationsSources, webConsole: WebConsole? = nil,
        limits: ServerLimits = ServerLimits(), logger: Logger
    ) {
        self.host = host
        self.port = port
        self.sources = sources
        self.webConsole = webConsole
        self.limits = limits
        // Below this level the library logs each request, which is of no use to the operator.
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        logger.handler = ServerLogHandler(logger.handler)
        self.logger = logger
    }

    /// Binds the address and serves requests until the task is cancelled or shut down gracefully. Requests in progress
    /// then get at most ``ServerLimits/stop`` to finish. Throws ``ListenError`` if the address cannot be bound.
    ///
    /// - Parameter onListening: called once with the port, when the server accepts connections.
    package func run(onListening: @escaping @Sendable (_ port: Int) async -> Void) async throws {
        guard (try? SocketAddress(ipAddress: host, port: port)) != nil else { throw ListenError.notAnAddress(host) }
        var configuration = ApplicationConfiguration(address: .hostname(host, port: port))
        configuration.availableConnectionsDelegate = MaximumAvailableConnections(limits.connectionsMax)
        let application = Application(
            router: router, server: server, configuration: configuration,
            onServerRunning: { channel in await onListening(channel.localAddress?.port ?? port) }, logger: logger)
        do {
            try await serve(application)
        } catch let error as IOError {
            throw ListenError.cannotBind(host: host, port: port, code: error.errnoCode)
        } catch is CancellationError {
            // The server was told to stop.
        }
    }

    /// Runs the application in an unstructured task. A task group would wait for the slowest request. One request that
    /// never ends must not keep a stopping daemon alive.
    private func serve(_ application: some ApplicationProtocol) async throws {
        let (ends, end) = AsyncThrowingStream.makeStream(of: End.self)
        let serving = Task {
            do {
                try await application.run()
                end.yield(.answered)
            } catch {
                end.finish(throwing: error)
            }
        }
        // This task is unstructured, so that a cancelled caller still waits for its value.
        let ended = Task { try await ends.first { _ in true } }
        defer { serving.cancel() }
        let how = try await withTaskCancellationHandler {
            try await withTaskCancellationOrGracefulShutdownHandler {
                try await ended.value
            } onCancelOrGracefulShutdown: { [limits] in
                Task {
                    try await Task.sleep(for: limits.stop)
                    end.yield(.late)
                }
            }
        } onCancel: {
            serving.cancel()
        }
        if how == .late { logger.warning("stopped before all requests had a response") }
    }

    private enum End: Sendable {
        case answered, late
    }

    private var router: Router<WebContext> {
        let router = Router(context: WebContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: RequestCounter())
        router.add(middleware: HostRule())
        router.add(middleware: GzipResponses())
        router.add(
            middleware: UnknownRoutes(
                routes: OperationsSources.paths.map { (.get, $0) } + (webConsole?.routes ?? []),
                page: webConsole?.unknownPage))
        let authenticator = webConsole?.authenticator
        sources.add(
            to: router,
            isTrusted: { await authenticator?.isTrusted($0, $1) ?? true },
            seesAll: { request, context in
                guard let authenticator, !authenticator.hasOpenMetrics else { return true }
                return await authenticator.isTrusted(request, context)
            })
        webConsole?.add(to: router)
        return router
    }

    /// Returns an address such as `127.0.0.1:8787` or `[::1]:8787`.
    package func address(port: Int) -> String {
        (host.contains(":") ? "[\(host)]" : host) + ":\(port)"
    }

    private var server: HTTPServerBuilder {
        HTTPServerBuilder { [http] in ConnectionHandler(http: HTTP1Channel(responder: $0, configuration: http)) }
    }

    private var http: HTTP1Channel.Configuration {
        let table = ConnectionTable(crowdedAt: limits.crowdedAt)
        return HTTP1Channel.Configuration(
            additionalChannelHandlers: [ProgressHandler(limits, table)],
            httpDecoderConfiguration: .init(
                maxHeaderFieldSize: Self.headBytesMax, maxHeaderListSize: Self.headBytesMax, maxHeaderFieldCount: 100))
    }
}

/// The reason why a server cannot listen.
package enum ListenError: Error, Hashable, Sendable, CustomStringConvertible {
    case notAnAddress(String)
    /// `code` is an error number of errno(3).
    case cannotBind(host: String, port: Int, code: Int32)

    package var description: String {
        switch self {
        case .notAnAddress(let host):
            "\"\(host)\" is not an IP address; name one of this machine, such as 127.0.0.1"
        case .cannotBind(let host, let port, let code):
            "cannot listen on \(host):\(port): \(String(cString: strerror(code))); choose another port, or 0 for a free one"
        }
    }
}
