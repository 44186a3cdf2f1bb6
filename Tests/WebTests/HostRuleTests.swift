import Testing

@testable import Web

/// The Host field, as RFC 9112 section 3.2 has it.
@Suite(.timeLimit(.minutes(10))) struct HostRuleTests {
    @Test(arguments: [
        "", "Host: a\r\nHost: b\r\n", "Host: localhost\r\nHost: localhost\r\n", "Host:\r\n", "Host: a b\r\n",
        "Host: a/b\r\n", "Host: user@a\r\n", "Host: a:b\r\n", "Host: [::1\r\n",
    ])
    func `a request without one good Host is refused`(fields: String) async throws {
        try await WebScene.with { scene in
            let connection = try RawConnection(port: scene.port)
            try await connection.send("GET /healthz HTTP/1.1\r\n\(fields)Connection: close\r\n\r\n")
            #expect(try await connection.receive(until: "nothing").hasPrefix("HTTP/1.1 400 "))
        }
    }

    @Test(arguments: [
        "localhost", "127.0.0.1:8787", "[::1]:8787", "fanfare.example.com", "a_b:", "xn--bcher-kva.example",
    ])
    func `a good one is taken`(host: String) { #expect(HostRule.isHost(host)) }
}
