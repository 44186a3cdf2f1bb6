import Logging
import Model
import SendingScene
import Synchronization
import Testing

@testable import Web

/// Clients that do not do their part, on a real server whose limits are short. Each test waits for what the server
/// does.
@Suite(.timeLimit(.minutes(10)))
struct ServerLimitsTests {
    /// One connection at a time: the next is answered when the one before has ended.
    private static var short: ServerLimits {
        var limits = ServerLimits()
        limits.lookEvery = .milliseconds(20)
        limits.connectionsMax = 1
        return limits
    }

    @Test func `a body that stops is refused in words, and changes nothing`() async throws {
        var limits = ServerLimits()
        limits.lookEvery = .milliseconds(20)
        limits.uploadSlack = .milliseconds(200)
        try await WebScene.with(limits: limits) { scene in
            try await scene.sending.addDevices(0..<2)
            let connection = try RawConnection(port: scene.port)
            try await connection.begin(
                "POST", "/api/v1/segments/fans/members", token: scene.secrets.secret(of: .author),
                chunk: "{\"installation_id\": \"install-1\"}\n")
            let answer = try await connection.receive(until: "the end of the connection")
            #expect(answer.hasPrefix("HTTP/1.1 408 "))
            #expect(answer.contains("at less than 128 bytes a second"))
            #expect(try await scene.api("GET", "/segments/fans", as: .author).status == 404)
        }
    }

    @Test(arguments: ["zz\r\nx\r\n", "ffffffffffffffffff\r\n", "1\r\nxy\r\n0\r\n\r\n"])
    func `a body whose parts are broken is the client's doing`(chunk: String) async throws {
        try await WebScene.with { scene in
            let connection = try RawConnection(port: scene.port)
            try await connection.begin(
                "POST", "/api/v1/segments/fans/members", token: scene.secrets.secret(of: .author))
            try await connection.chunk("{\"installation_id\": \"install-1\"}\n")
            try await connection.send(chunk)
            let answer = try await connection.receive(until: "the end of the connection")
            #expect(answer.hasPrefix("HTTP/1.1 400 "))
            #expect(answer.contains("the body broke off"))
        }
    }

    @Test func `an answer that nobody takes ends its connection`() async throws {
        var limits = Self.short
        limits.write = .milliseconds(200)
        try await WebScene.with(limits: limits) { scene in
            let connection = try RawConnection(port: scene.port)
            // More than the kernel keeps for both sides.
            let request = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try await connection.send(String(repeating: request, count: 400))
            #expect(try await scene.ask("GET", "/healthz").status == 200)
            withExtendedLifetime(connection) {}
        }
    }

    @Test func `clients that send half a request keep no other client out`() async throws {
        var limits = ServerLimits()
        limits.crowdedAt = 8
        limits.connectionsMax = 16
        try await WebScene.with(limits: limits) { scene in
            let slow = try (0..<60).map { _ in try RawConnection(port: scene.port) }
            for connection in slow {
                try? await connection.send("POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\nx")
            }
            for _ in 0..<20 { #expect(try await scene.ask("GET", "/healthz").status == 200) }
            #expect(try await scene.api("GET", "/runs").status == 200)
            withExtendedLifetime(slow) {}
        }
    }

    @Test func `what is asked behind a last request keeps no connection`() async throws {
        var limits = Self.short
        limits.halfClosed = .milliseconds(200)
        try await WebScene.with(limits: limits) { scene in
            let connection = try RawConnection(port: scene.port)
            let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
            try await connection.send(
                request + "Connection: close\r\n\r\n" + String(repeating: request + "\r\n", count: 40))
            #expect(try await scene.ask("GET", "/healthz").status == 200)
            withExtendedLifetime(connection) {}
        }
    }

    @Test func `an answer takes as long as its client waits, and no longer`() async throws {
        var limits = Self.short
        limits.connectionsMax = 2
        // Longer than a client needs to ask after it has connected.
        limits.idle = .seconds(15)
        limits.write = .milliseconds(200)
        limits.halfClosed = .milliseconds(200)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let sources = OperationsSources(
            registry: PrometheusRegistry(),
            readiness: {
                ask.yield()
                for await _ in opened { break }
                return nil
            })
        try await Self.serve(sources, limits) { port in
            var questions = asked.makeAsyncIterator()
            let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let patient = try RawConnection(port: port)
            try await patient.send(request)
            await questions.next()
            // Another one is idle for long enough to be closed.
            #expect(try await RawConnection(port: port).receive(until: "nothing") == "")
            // The next one leaves, and is let go of although its answer is not made.
            let leaver = try RawConnection(port: port)
            try await leaver.send(request)
            await questions.next()
            leaver.sendsNoMore()
            #expect(try await leaver.receive(until: "nothing") == "")
            open.finish()
            #expect(try await patient.receive(until: "ready\n").hasPrefix("HTTP/1.1 200 "))
        }
    }

    @Test func `a server that is told to stop waits so long for an answer, and no longer`() async throws {
        var limits = ServerLimits()
        limits.stop = .milliseconds(100)
        let stuck = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let sources = OperationsSources(
            registry: PrometheusRegistry(),
            readiness: {
                await withCheckedContinuation { continuation in
                    stuck.withLock { $0 = continuation }
                    ask.yield()
                }
                return nil
            })
        try await Self.serve(sources, limits) { port in
            let connection = try RawConnection(port: port)
            try await connection.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for await _ in asked { break }
        }
        stuck.withLock { $0 }?.resume()
    }

    private static func serve(
        _ sources: OperationsSources, _ limits: ServerLimits, _ body: (Int) async throws -> Void
    ) async throws {
        let server = HTTPServer(
            host: "127.0.0.1", port: 0, sources: sources, limits: limits,
            logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (ports, port) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
                defer { port.finish() }
                try await server.run { port.yield($0) }
            }
            try await body(try #require(await ports.first { _ in true }))
            group.cancelAll()
            try await group.waitForAll()
        }
    }
}
