import Campaigns
import Model
import SendingScene
import TestSupport
import Testing

@testable import Web

/// Streams that stay open, on connections as a browser has them.
@Suite(.timeLimit(.minutes(10)))
struct LiveStreamTests {
    /// A stream of the list of runs that has told its first state.
    private static func listen(_ scene: WebScene, session: String) async throws -> (RawConnection, String) {
        let connection = try RawConnection(port: scene.port)
        try await connection.send("GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: fanfare=\(session)\r\n\r\n")
        return (connection, try await connection.receive(until: "\n\r\n"))
    }

    enum SessionEnd: CaseIterable {
        case tokenRevoked, signedOut, idle
    }

    @Test(arguments: SessionEnd.allCases)
    func `a stream ends soon after the session that it belongs to`(_ end: SessionEnd) async throws {
        try await WebScene.with { scene in
            let session = scene.secrets.session(of: .viewer)
            let (connection, head) = try await Self.listen(scene, session: session)
            #expect(head.hasPrefix("HTTP/1.1 200 "))
            let clock = scene.sending.clock
            // Half a minute later it is asked again, and goes on: who signed in may see it.
            await clock.sleeper(atLeast: .seconds(30))
            await clock.sleeper(until: clock.now + .seconds(1))
            clock.advance(by: .seconds(30))
            _ = try await connection.receive(until: "event: beat")
            await clock.sleeper(atLeast: .seconds(30))
            switch end {
            case .tokenRevoked:
                _ = try await scene.webConsole.cases.access.revoke("viewer", by: "test", now: clock.now)
            case .signedOut: try await scene.webConsole.cases.access.signOut(session)
            // A page that stays open is no use of it.
            case .idle: clock.advance(by: .seconds(12 * 3600 - 30))
            }
            clock.advance(by: .seconds(30))
            #expect(try await connection.receive(until: "event: end").contains("event: end"))
        }
    }

    @Test func `one caller has so many streams open, and another still has theirs`() async throws {
        try await WebScene.with { scene in
            var open: [RawConnection] = []
            for _ in 0..<LiveStreams.perCallerMax {
                let (connection, head) = try await Self.listen(scene, session: scene.secrets.session(of: .viewer))
                #expect(head.hasPrefix("HTTP/1.1 200 "))
                open.append(connection)
            }
            let (_, refused) = try await Self.listen(scene, session: scene.secrets.session(of: .viewer))
            #expect(refused.hasPrefix("HTTP/1.1 429 "))
            #expect(refused.contains("Retry-After: 30\r\n"))
            let page = try await scene.page("/state", as: .viewer)
            #expect(page.status == 200)
            let (_, other) = try await Self.listen(scene, session: scene.secrets.session(of: .author))
            #expect(other.hasPrefix("HTTP/1.1 200 "))
            withExtendedLifetime(open) {}
        }
    }

    @Test func `streams that were asked for with a body, which nobody reads, end when their clients leave`()
        async throws
    {
        try await WebScene.with { scene in
            let session = scene.secrets.session(of: .viewer)
            for _ in 0..<LiveStreams.perCallerMax {
                let connection = try RawConnection(port: scene.port)
                try await connection.send(
                    "GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: fanfare=\(session)\r\n"
                        + "Transfer-Encoding: chunked\r\n\r\n")
                for _ in 0..<20 { try await connection.chunk("x") }
                #expect(try await connection.receive(until: "\n\r\n").hasPrefix("HTTP/1.1 200 "))
                connection.leave()
            }
            // What was written to them is found out to be for nobody with the next thing they say.
            await scene.sending.clock.sleeper(atLeast: .seconds(1))
            var head = ""
            while !head.hasPrefix("HTTP/1.1 200 ") {
                try Task.checkCancellation()
                scene.sending.clock.advance(by: .seconds(5))
                head = try await Self.listen(scene, session: session).1
            }
        }
    }

    @Test func `a stream that has ended makes room, and half of the connections are for other requests`() async throws {
        try await WebScene.with { scene in
            let streams = LiveStreams(cases: scene.webConsole.cases)
            var slots = try (0..<LiveStreams.perCallerMax).map { _ in try LiveStreams.Slot(streams, "anna") }
            #expect(throws: Problem.self) { try LiveStreams.Slot(streams, "anna") }
            slots.removeLast()
            slots.append(try LiveStreams.Slot(streams, "anna"))
            let others = LiveStreams.streamsMax / LiveStreams.perCallerMax - 1
            for number in 0..<others {
                slots += try (0..<LiveStreams.perCallerMax).map { _ in try LiveStreams.Slot(streams, "\(number)") }
            }
            let refused = #expect(throws: Problem.self) { try LiveStreams.Slot(streams, "berta") }
            #expect(refused?.status == 503)
            #expect(refused?.retryAfter == 30)
            slots = []
            slots.append(try LiveStreams.Slot(streams, "berta"))
        }
    }
}
