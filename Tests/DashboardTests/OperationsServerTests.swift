import CoreMetrics
import Dashboard
import Foundation
import FoundationNetworking
import Metrics
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2)))
struct OperationsServerTests {
    private func withServer(
        readiness: @escaping @Sendable () async -> String? = { nil },
        registry: PrometheusRegistry = PrometheusRegistry(),
        _ body: (OperationsServer) async throws -> Void
    ) async throws {
        let server = try OperationsServer(
            host: "127.0.0.1", port: 0, registry: registry,
            gauges: { [GaugeFamily("now", "Read now.", [MetricSample([], 1)])] }, readiness: readiness)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            let result: Result<Void, any Error>
            do { result = .success(try await body(server)) } catch { result = .failure(error) }
            group.cancelAll()
            try await group.waitForAll()
            try result.get()
        }
    }

    private func get(
        _ path: String, _ server: OperationsServer, method: String = "GET"
    ) async throws -> (status: Int, type: String?, text: String) {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)\(path)")))
        request.httpMethod = method
        let (data, response) = try await URLSession.shared.data(for: request)
        let answer = try #require(response as? HTTPURLResponse)
        return (
            answer.statusCode, answer.value(forHTTPHeaderField: "Content-Type"), String(decoding: data, as: UTF8.self)
        )
    }

    @Test func `metrics are served as Prometheus reads them`() async throws {
        let registry = PrometheusRegistry()
        for number in 0..<2_000 {
            Counter(label: "many", dimensions: [("number", "\(number)")], factory: registry).increment(by: number)
        }
        try await withServer(registry: registry) { server in
            let answer = try await get("/metrics?x=1", server)
            #expect(answer.status == 200)
            #expect(answer.type == "text/plain; version=0.0.4; charset=utf-8")
            let read = ExpositionGrammar(answer.text)
            #expect(read.faults == [])
            #expect(read.value("many_total", ["number": "1999"]) == 1999)
            #expect(read.value("now") == 1)
            #expect(try await get("/metrics", server, method: "HEAD").text == "")
        }
    }

    @Test func `health is always told, readiness with its reason`() async throws {
        let reason = Reason()
        try await withServer(readiness: { reason.text }) { server in
            #expect(try await get("/healthz", server).text == "ok\n")
            #expect(try await get("/readyz", server).status == 200)
            reason.text = "the store is held by another process"
            let answer = try await get("/readyz", server)
            #expect(answer.status == 503)
            #expect(answer.text == "not ready: the store is held by another process\n")
            #expect(try await get("/healthz", server).status == 200)
        }
    }

    @Test func `other paths and methods are refused`() async throws {
        try await withServer { server in
            let elsewhere = try await get("/", server)
            let posted = try await get("/metrics", server, method: "POST")
            #expect(elsewhere.status == 404)
            #expect(posted.status == 405)
        }
    }

    @Test func `many at once are all answered`() async throws {
        try await withServer { server in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<12 { group.addTask { try await get("/healthz", server).status } }
                for try await status in group { #expect(status == 200) }
            }
        }
    }

    @Test func `a port that is taken is named`() async throws {
        try await withServer { server in
            #expect {
                try OperationsServer(host: "127.0.0.1", port: server.port, registry: PrometheusRegistry())
            } throws: {
                "\($0)".contains("cannot listen on 127.0.0.1:\(server.port)")
            }
        }
    }
}

private final class Reason: Sendable {
    private let state = Mutex<String?>(nil)

    var text: String? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
