import CoreMetrics
import Foundation
import Logging
import Metrics
import Synchronization
import Testing
import Web

@Suite(.timeLimit(.minutes(10)))
struct HTTPServerTests {
    private static let silent = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }

    /// The port and the address of the running server.
    private struct Listening {
        let port: Int
        let address: String
    }

    private func withServer(
        health: @escaping @Sendable () async -> String? = { nil },
        readiness: @escaping @Sendable () async -> String? = { nil },
        outages: @escaping @Sendable () -> [String] = { [] },
        registry: PrometheusRegistry = PrometheusRegistry(),
        _ body: (Listening) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            host: "127.0.0.1", port: 0,
            sources: OperationsSources(
                registry: registry, gauges: { [GaugeFamily("now", "Read now.", [MetricSample([], 1)])] },
                health: health, readiness: readiness, outages: outages),
            logger: Self.silent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (ports, port) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
                defer { port.finish() }
                try await server.run { port.yield($0) }
            }
            let result: Result<Void, any Error>
            do {
                let port = try #require(await ports.first { _ in true })
                result = .success(try await body(Listening(port: port, address: server.address(port: port))))
            } catch {
                result = .failure(error)
            }
            group.cancelAll()
            try await group.waitForAll()
            try result.get()
        }
    }

    private func get(
        _ path: String, _ server: Listening, method: String = "GET", headers: [String: String] = [:]
    ) async throws -> (status: Int, type: String?, text: String) {
        let exchange = try await HTTPExchange.ask(method, path, port: server.port, headers: headers)
        return (exchange.status, exchange.headers["content-type"], exchange.text)
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
            let head = try await get("/metrics", server, method: "HEAD")
            #expect(head.status == 200)
            #expect(head.text == "")
        }
    }

    @Test func `healthz stays ok while readyz gives its reason`() async throws {
        let reason = Reason()
        try await withServer(readiness: { reason.text }) { server in
            #expect(try await get("/healthz", server).text == "ok\n")
            #expect(try await get("/readyz", server).status == 200)
            #expect(try await get("/readyz", server).text == "ready\n")
            reason.text = "the store is locked by another process"
            let answer = try await get("/readyz", server)
            #expect(answer.status == 503)
            #expect(answer.text == "not ready: the store is locked by another process\n")
            #expect(try await get("/healthz", server).status == 200)
        }
    }

    /// A load balancer must not take the pages away from those who want to stop a campaign.
    @Test func `an outage of APNs is named, and requests are still served`() async throws {
        let reason = Reason()
        let outages = ["APNs cannot be reached", "nor in the sandbox"]
        try await withServer(readiness: { reason.text }, outages: { outages }) { server in
            let answer = try await get("/readyz", server)
            #expect(answer.status == 200)
            #expect(answer.text == "ready: APNs cannot be reached\nnor in the sandbox\n")
            reason.text = "the store is away"
            let away = try await get("/readyz", server)
            #expect(away.status == 503 && away.text == "not ready: the store is away\n")
        }
    }

    @Test func `a daemon that hangs is not healthy, and readiness is not checked`() async throws {
        let reason = Reason()
        let asked = Mutex(0)
        try await withServer(
            health: { reason.text },
            readiness: {
                asked.withLock { $0 += 1 }
                return nil
            }
        ) { server in
            #expect(try await get("/healthz", server).status == 200)
            reason.text = "the daemon hangs"
            let answer = try await get("/healthz", server)
            #expect(answer.status == 503)
            #expect(answer.text == "not alive: the daemon hangs\n")
            #expect(asked.withLock { $0 } == 0)
            #expect(try await get("/readyz", server).status == 200)
        }
    }

    @Test func `other paths and methods are refused`() async throws {
        try await withServer { server in
            let elsewhere = try await get("/", server)
            let posted = try await get("/metrics", server, method: "POST")
            let postedElsewhere = try await get("/", server, method: "POST")
            #expect(elsewhere.status == 404)
            #expect(elsewhere.text == "/ does not exist\n")
            #expect(posted.status == 405)
            #expect(posted.text == "GET, HEAD only\n")
            #expect(postedElsewhere.status == 404)
        }
    }

    @Test func `a header that is too long is refused`() async throws {
        try await withServer { server in
            let long = String(repeating: "x", count: 9000)
            let answer = try await get("/healthz", server, headers: ["X-Long": long])
            #expect(answer.status == 400)
            #expect(try await get("/healthz", server).status == 200)
        }
    }

    @Test func `simultaneous requests all get a response`() async throws {
        try await withServer { server in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<12 { group.addTask { try await get("/healthz", server).status } }
                for try await status in group { #expect(status == 200) }
            }
        }
    }

    @Test func `the error names a port that is in use`() async throws {
        try await withServer { server in
            let found = await #expect(throws: ListenError.self) { try await run(host: "127.0.0.1", port: server.port) }
            let error = try #require(found)
            #expect("\(error)".contains("cannot listen on 127.0.0.1:\(server.port): Address already in use"))
        }
    }

    @Test func `a host name instead of an IP address is refused by name`() async throws {
        let found = await #expect(throws: ListenError.self) { try await run(host: "localhost", port: 0) }
        let error = try #require(found)
        #expect("\(error)".contains("\"localhost\" is not an IP address"))
    }

    private func run(host: String, port: Int) async throws {
        let sources = OperationsSources(registry: PrometheusRegistry())
        try await HTTPServer(host: host, port: port, sources: sources, logger: Self.silent).run { _ in
            Issue.record("nothing can be bound")
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
