import HTTP2
import Synchronization

/// `/metrics`, `/healthz` and `/readyz` over plain HTTP, for this machine's eyes: bind it to the loopback.
///
/// `/healthz` answers as long as the process turns its loops; `/readyz` is 503 with a reason while `readiness` gives
/// one; `/metrics` is the text that Prometheus reads, gauges read at that moment. GET and HEAD, one request a connection.
package final class OperationsServer: Sendable {
    /// Requests at once; more are answered 503.
    private static let requestsMax = 16
    private static let connectionsMax = 64

    private let registry: PrometheusRegistry
    private let gauges: @Sendable () async -> [GaugeFamily]
    private let readiness: @Sendable () async -> String?
    private let loop: EventLoop
    private let questions: AsyncStream<Question>
    private let asking: AsyncStream<Question>.Continuation
    private let listener: ConfinedListener
    /// What it is bound to; never 0.
    package let port: Int
    private let host: String
    /// `127.0.0.1:8787`, `[::1]:8787`.
    package var address: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    /// A request, and the connection that waits for its answer on the loop.
    private struct Question: @unchecked Sendable {
        // The connection is touched on its loop's thread only: it is just carried along here.
        let connection: OperationsConnection
        let request: OperationsRequest
    }

    /// Binds at once; `port` 0 takes a free one. Nothing is answered before ``run()``.
    ///
    /// - Parameters:
    ///   - readiness: why the process cannot do its work now; nil when it can.
    package init(
        host: String, port: Int, registry: PrometheusRegistry,
        gauges: @escaping @Sendable () async -> [GaugeFamily] = { [] },
        readiness: @escaping @Sendable () async -> String? = { nil }
    ) throws {
        self.registry = registry
        self.gauges = gauges
        self.readiness = readiness
        let loop = try EventLoop(named: "operations")
        self.loop = loop
        let (questions, asking) = AsyncStream.makeStream(
            of: Question.self, bufferingPolicy: .bufferingOldest(Self.requestsMax))
        self.questions = questions
        self.asking = asking
        let open = OpenConnections(max: Self.connectionsMax)
        listener = ConfinedListener(
            try ListeningSocket(host: host, port: port, loop: loop) { descriptor in
                let connection = OperationsConnection(
                    descriptor: descriptor, loop: loop,
                    asked: { request, connection in
                        let result = asking.yield(Question(connection: connection, request: request))
                        if case .enqueued = result { return }
                        connection.respond(.busy)
                    }, closed: { open.count -= 1 })
                open.count += 1
                if open.isFull { connection.abandon() } else { connection.start() }
            })
        self.host = host
        self.port = listener.value.port
    }

    /// Answers until cancelled; then the port is closed.
    package func run() async throws {
        try loop.start()
        loop.submit { [listener] in listener.value.listen() }
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                for await question in questions {
                    group.addTask { await self.answer(question) }
                }
            }
        } onCancel: {
            asking.finish()
        }
        loop.stop()
    }

    private func answer(_ question: Question) async {
        let response = await response(to: question.request)
        loop.submit { question.connection.respond(response) }
    }

    private func response(to request: OperationsRequest) async -> OperationsResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return OperationsResponse(status: 405, body: "GET only\n")
        }
        switch request.path {
        case "/healthz": return OperationsResponse(status: 200, body: "ok\n")
        case "/readyz":
            guard let reason = await readiness() else { return OperationsResponse(status: 200, body: "ready\n") }
            return OperationsResponse(status: 503, body: "not ready: \(reason)\n")
        case "/metrics":
            let text = registry.text(with: await gauges())
            return OperationsResponse(status: 200, type: PrometheusText.contentType, body: text)
        default: return OperationsResponse(status: 404, body: "/metrics, /healthz or /readyz\n")
        }
    }
}

/// How many connections are open. The loop's thread only.
private final class OpenConnections {
    let max: Int
    var count = 0

    init(max: Int) {
        self.max = max
    }

    var isFull: Bool { count > max }
}

/// A socket that is made on one thread and used on its loop's thread only.
private struct ConfinedListener: @unchecked Sendable {
    let value: ListeningSocket

    init(_ value: ListeningSocket) {
        self.value = value
    }
}
