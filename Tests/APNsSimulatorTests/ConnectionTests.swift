import APNsSimulator
import COpenSSL
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Connections {
        @Test func `one stream until the first accepted push, then a thousand`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push(200)).reason == "BadDeviceToken")
            #expect(client.streamLimits == [1])
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits.count == 2 }
            #expect(client.streamLimits == [1, 1000])
        }

        @Test func `a stream over the limit is refused, the connection goes on`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            // Before the SETTINGS are read nothing keeps the client back.
            let streams = try (0..<5).map { _ in client.submit(try fixture.push()) }
            try client.wait { client in
                streams.allSatisfy { client.answers[$0]?.isEnded == true || client.resets[$0] != nil }
            }
            let refused = streams.filter { client.resets[$0] == 7 }
            #expect(client.answers[streams[0]]?.status == 200)
            #expect(client.resets.values.allSatisfy { $0 == 7 })
            #expect(fixture.simulator.counts().refusedStreams == refused.count)
            #expect(fixture.simulator.log().count == 5 - refused.count)
            #expect(try client.answer(to: fixture.push()).status == 200)
        }

        @Test func `streams over the limit are refused even after the client knows it`() throws {
            let fixture = try Fixture { options, _ in
                options.streamsMax = 2
                options.answerDelayMs = 50
            }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits == [1, 2] }
            try client.forgetStreamLimit()
            let streams = try (0..<4).map { _ in client.submit(try fixture.push()) }
            try client.wait { client in
                streams.allSatisfy { client.answers[$0]?.isEnded == true || client.resets[$0] != nil }
            }
            #expect(client.resets == [streams[2]: 7, streams[3]: 7])
            #expect(client.answers[streams[0]]?.status == 200)
            #expect(client.answers[streams[1]]?.status == 200)
            #expect(client.goAways.isEmpty)
        }

        @Test func `a thousand pushes at once are all answered`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits.count == 2 }
            let streams = try (0..<1000).map { client.submit(try fixture.push(1 + $0 % 9)) }
            try client.wait { client in streams.allSatisfy { client.answers[$0]?.isEnded == true } }
            #expect(streams.allSatisfy { client.answers[$0]?.status == 200 })
            #expect(fixture.simulator.counts().accepted == 1001)
            #expect((fixture.simulator.log().map(\.openStreams).max() ?? 0) > 1)
        }

        @Test(arguments: [["http/1.1"], []] as [[String]])
        func `a client that does not offer h2 gets no handshake`(protocols: [String]) throws {
            let fixture = try Fixture()
            let port = fixture.simulator.port(for: .production)
            #expect(throws: TestClient.Failure.noHandshake) {
                try TLSClientStream(port: port, trusting: fixture.simulator.authorityPath, protocols: protocols)
            }
            let both = try TLSClientStream(
                port: port, trusting: fixture.simulator.authorityPath, protocols: ["http/1.1", "h2"])
            withExtendedLifetime(both) {}
        }

        @Test func `TLS before 1.2 gets no handshake`() throws {
            let fixture = try Fixture()
            let port = fixture.simulator.port(for: .production)
            #expect(throws: TestClient.Failure.noHandshake) {
                try TLSClientStream(
                    port: port, trusting: fixture.simulator.authorityPath, maximumVersion: TLS1_1_VERSION)
            }
            let older = try TLSClientStream(
                port: port, trusting: fixture.simulator.authorityPath, maximumVersion: TLS1_2_VERSION)
            withExtendedLifetime(older) {}
        }

        @Test(arguments: [1, 2])
        func `stop leaves no thread, no port and no answer behind`(threads: Int) throws {
            let before = try Self.simulatorThreads()
            let fixture = try Fixture { options, _ in options.threads = threads }
            let port = fixture.simulator.port(for: .production)
            let clients = try (0..<4).map { _ in try fixture.client() }
            for client in clients { #expect(try client.answer(to: fixture.push()).status == 200) }
            #expect(try Self.simulatorThreads() == before + threads)
            fixture.simulator.stop()
            fixture.simulator.stop()
            #expect(try Self.simulatorThreads() == before)
            for client in clients { try client.waitForEnd() }
            #expect(clients.filter(\.isEnded).count == 4)
            #expect(throws: TestClient.Failure.ended) { try TLSClientStream.connect(to: port) }
        }

        private static func simulatorThreads() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { task in
                do {
                    let name = try String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
                    return name.hasPrefix("apns-sim")
                } catch {
                    // A thread of somebody else that ended in between.
                    return false
                }
            }
        }
    }
}
