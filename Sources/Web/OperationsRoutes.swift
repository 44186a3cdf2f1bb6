import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Where the answers of the operations routes come from.
package struct OperationsSources: Sendable {
    private let registry: PrometheusRegistry
    private let gauges: @Sendable () async -> [GaugeFamily]
    private let health: @Sendable () async -> String?
    private let readiness: @Sendable () async -> String?

    /// - Parameters:
    ///   - registry: what is counted as it happens.
    ///   - gauges: what is read when somebody asks for metrics.
    ///   - health: why the process does not do its work; nil when it does. Must not wait for a store.
    ///   - readiness: why nothing could be sent now; nil when it could.
    package init(
        registry: PrometheusRegistry, gauges: @escaping @Sendable () async -> [GaugeFamily] = { [] },
        health: @escaping @Sendable () async -> String? = { nil },
        readiness: @escaping @Sendable () async -> String? = { nil }
    ) {
        self.registry = registry
        self.gauges = gauges
        self.health = health
        self.readiness = readiness
    }

    func router() -> Router<OperationsContext> {
        let router = Router(context: OperationsContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: ResponseDeadline())
        router.add(middleware: ReadOnlyRoutes())
        router.get("healthz") { _, _ in
            guard let reason = await health() else { return Response.text("ok\n") }
            return .text("not alive: \(reason)\n", .serviceUnavailable)
        }
        router.get("readyz") { _, _ in
            guard let reason = await readiness() else { return Response.text("ready\n") }
            return .text("not ready: \(reason)\n", .serviceUnavailable)
        }
        router.get("metrics") { _, _ in
            Response.text(registry.text(with: await gauges()), type: PrometheusText.contentType)
        }
        return router
    }
}

/// A request's context that knows its connection.
struct OperationsContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

/// Ends a connection whose answer is not made, or not read by the client, in time.
private struct ResponseDeadline: RouterMiddleware {
    private static let limit: TimeAmount = .seconds(10)

    func handle(
        _ request: Request, context: OperationsContext, next: (Request, OperationsContext) async throws -> Response
    ) async throws -> Response {
        let channel = context.channel
        let closing = channel.eventLoop.scheduleTask(in: Self.limit) { channel.close(promise: nil) }
        do {
            var response = try await next(request, context)
            let body = response.body
            guard request.method != .head else {
                // Its body is not written.
                closing.cancel()
                return response
            }
            response.body = ResponseBody(contentLength: body.contentLength) { writer in
                defer { closing.cancel() }
                try await body.write(writer)
            }
            return response
        } catch {
            closing.cancel()
            throw error
        }
    }
}

/// Refuses methods other than GET and HEAD with 405, and names the paths there are in a 404.
private struct ReadOnlyRoutes: RouterMiddleware {
    func handle(
        _ request: Request, context: OperationsContext, next: (Request, OperationsContext) async throws -> Response
    ) async throws -> Response {
        guard request.method == .get || request.method == .head else { return .text("GET only\n", .methodNotAllowed) }
        do {
            return try await next(request, context)
        } catch let error as HTTPError where error.status == .notFound {
            return .text("/metrics, /healthz or /readyz\n", .notFound)
        }
    }
}

extension Response {
    fileprivate static func text(
        _ text: String, _ status: HTTPResponse.Status = .ok, type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(
            status: status, headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
