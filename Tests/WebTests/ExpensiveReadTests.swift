import Model
import SendingScene
import Testing

@testable import Web

/// Reads that take minutes, and everything that must not wait for them.
@Suite(.timeLimit(.minutes(10))) struct ExpensiveReadTests {
    /// So many tags for each of so many devices: minutes of work for a database.
    private static let slow = (0..<800).map { "tag(\\\"t\($0)\\\")" }.joined(separator: " or ")
    private static let devices = 5_000

    private static func count(_ expression: String) -> String {
        "{\"expression\": \"\(expression)\", \"topic\": \"\(topic)\", \"push_type\": \"alert\"}"
    }

    private static let topic = "com.example.app"

    private static func begin(_ scene: WebScene, as role: AccessRole) async throws -> RawConnection {
        let connection = try RawConnection(port: scene.port)
        let body = count(slow)
        try await connection.send(
            "POST /api/v1/segments/count HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                + "\(scene.secrets.secret(of: role))\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        return connection
    }

    @Test func `pages, stops and health answer while many callers count`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<Self.devices)
            var counting: [RawConnection] = []
            for role in [AccessRole.admin, .author, .sender, .approver, .admin, .author, .sender, .approver] {
                counting.append(try await Self.begin(scene, as: role))
            }
            for _ in 0..<5 {
                #expect(try await scene.page("/").status == 200)
                #expect(try await scene.api("GET", "/runs").status == 200)
                #expect(try await scene.ask("GET", "/healthz").status == 200)
            }
            let stop = try await scene.api("POST", "/stops", as: .sender, body: "{\"reason\": \"wrong text\"}")
            #expect([200, 201, 202].contains(stop.status), "\(stop.text)")
            for connection in counting { connection.leave() }
        }
    }

    @Test func `a count ends when its client leaves, and its turn is the next one's`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<Self.devices)
            for _ in 0..<3 { try await Self.begin(scene, as: .author).leave() }
            // As the same caller it waits for all of them, and each takes minutes to its end.
            let start = ContinuousClock.now
            let answer = try await scene.api(
                "POST", "/segments/count", as: .author, body: Self.count("locale = \\\"de-AT\\\""))
            #expect(answer.status == 200, "\(answer.text)")
            #expect(ContinuousClock.now - start < .seconds(240))
        }
    }

    @Test func `a caller's reads beyond what may wait are refused with words`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<Self.devices)
            var counting: [RawConnection] = []
            for _ in 0..<40 { counting.append(try await Self.begin(scene, as: .author)) }
            var refused = ""
            // Some of them are answered without a count: those that are too many. A busy machine reads them late.
            let end = ContinuousClock.now + .seconds(240)
            while refused.isEmpty, ContinuousClock.now < end {
                for connection in counting.reversed() where refused.isEmpty {
                    refused = try await connection.receive(within: 1)
                }
            }
            for connection in counting { connection.leave() }
            #expect(refused.contains(" 503 ") && refused.contains("long reads already wait"), "\(refused)")
        }
    }
}
