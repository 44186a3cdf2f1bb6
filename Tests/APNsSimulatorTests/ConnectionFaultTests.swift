import APNsSimulator
import Foundation
import Testing
import TestSupport

extension SimulatorTests {
    /// What goes wrong with whole connections.
    @Suite struct ConnectionFaults {
        private func fixture(delayMs: Int = 0, _ rules: FaultRule...) throws -> Fixture {
            try Fixture { options, _ in
                options.faults = rules
                options.answerDelayMs = delayMs
            }
        }

        /// A client with a whole connection's width, its first push answered.
        private func warmClient(_ fixture: Fixture) throws -> TestClient {
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits.count == 2 }
            return client
        }

        /// Streams 3 to 11 are in flight when the GOAWAY of the last comes, the answers of all waiting.
        @Test(
            arguments: [
                (FaultAction.LastStream.none, Int32(0), 0), (.before, 9, 4), (.middle, 7, 3), (.this, 11, 5),
                (.all, .max, 5),
            ] as [(FaultAction.LastStream, Int32, Int)])
        func `GOAWAY leaves what it does not cover unprocessed, in the log too`(
            last: FaultAction.LastStream, stream: Int32, covered: Int
        ) throws {
            let fixture = try fixture(
                delayMs: 20, FaultRule(when: .number(6), action: .goAway(lastStream: last, reason: nil)))
            let client = try warmClient(fixture)
            let streams = try (0..<5).map { _ in client.submit(try fixture.push()) }
            try client.write()
            try client.waitForEnd()
            let announced = stream == .max ? [stream, streams[4]] : [stream]
            #expect(client.goAways == announced.map { .init(lastStream: $0, debugData: "") })
            #expect(streams.map { client.answers[$0]?.isEnded == true } == (0..<5).map { $0 < covered })
            let log = fixture.simulator.log().dropFirst()
            #expect(log.map(\.status) == (0..<5).map { $0 < covered ? 200 : 0 })
            #expect(log.map(\.isAnswerLost) == Array(repeating: false, count: 5))
            #expect(fixture.simulator.counts().accepted == 1 + covered)
            #expect(fixture.simulator.counts().lostAnswers == 0)
        }

        @Test func `what comes after a GOAWAY is not processed`() throws {
            let fixture = try fixture(FaultRule(when: .number(3), action: .goAway(lastStream: .this, reason: nil)))
            let client = try warmClient(fixture)
            for _ in 0..<9 { client.submit(try fixture.push()) }
            try client.write()
            try client.waitForEnd()
            #expect(fixture.simulator.counts().accepted == 3)
            #expect(fixture.simulator.log().allSatisfy { $0.stream <= 5 || $0.status == 0 })
        }

        @Test func `GOAWAY that closes loses the answers it promised`() throws {
            let fixture = try fixture(
                delayMs: 20,
                FaultRule(
                    when: .number(4),
                    action: .goAway(lastStream: .all, reason: nil, text: "shutting down", isTwice: true, closes: true)))
            let client = try warmClient(fixture)
            for _ in 0..<3 { client.submit(try fixture.push()) }
            try client.write()
            try client.waitForEnd()
            #expect(client.goAways == Array(repeating: .init(lastStream: .max, debugData: "shutting down"), count: 2))
            #expect(client.answers.values.count(where: \.isEnded) == 1)
            #expect(fixture.simulator.log().map(\.isAnswerLost) == [false, true, true, true])
        }

        @Test func `a connection can fall silent, PING and all`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .silentConnection))
            let client = try warmClient(fixture)
            client.submit(try fixture.push())
            try client.write()
            try fixture.simulator.wait { $0.requests == 2 }
            client.submitPing()
            client.submit(try fixture.push())
            try client.write()
            #expect(try client.isQuiet(forMilliseconds: 50))
            #expect(client.pingAcknowledgements == 0)
            #expect(fixture.simulator.counts().requests == 2)
            #expect(fixture.simulator.counts().openConnections == 1)
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
        }

        @Test func `the stream limit can drop to one and come back`() throws {
            let fixture = try fixture(
                FaultRule(when: .number(2), action: .streamLimit(1)),
                FaultRule(when: .number(3), action: .streamLimit(1000)),
                FaultRule(when: .number(4), action: .streamLimit(0, forMilliseconds: 5)))
            let client = try warmClient(fixture)
            for _ in 0..<3 { #expect(try client.answer(to: fixture.push()).status == 200) }
            try client.wait { $0.streamLimits.count == 6 }
            #expect(client.streamLimits == [1, 1000, 1, 1000, 0, 1000])
            #expect(try client.answer(to: fixture.push()).status == 200)
        }

        @Test func `an answer can break off after its headers`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .cutAnswer))
            let client = try warmClient(fixture)
            let cut = client.submit(try fixture.push())
            try client.wait { $0.resets[cut] != nil }
            #expect(client.resets == [cut: 2])
            #expect(client.answers[cut]?.status == 200)
            #expect(client.answers[cut]?.isEnded == false)
            #expect(fixture.simulator.log()[1].isAnswerLost)
        }

        @Test func `a page comes in place of JSON`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .page(status: 502, body: "<html>no</html>")))
            let client = try warmClient(fixture)
            let answer = try client.answer(to: fixture.push())
            #expect(answer.status == 502 && answer.text == "<html>no</html>")
            #expect(answer.headers["content-type"] == "text/html")
        }

        @Test func `a connect can end before TLS, or never be answered`() throws {
            let fixture = try fixture(
                .droppedConnect(.number(1)), FaultRule(when: .number(2), moment: .connect, action: .silence))
            #expect(throws: TestClient.Failure.noHandshake) { try fixture.client() }
            let port = fixture.simulator.port(for: .production)
            let descriptor = try TLSClientStream.connect(to: port)
            defer { close(descriptor) }
            var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            #expect(poll(&wait, 1, 50) == 0)
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
            #expect(fixture.simulator.counts().faults == 2)
        }

        @Test func `an outage ends all connections and refuses new ones until it is over`() throws {
            let fixture = try fixture(FaultRule(when: .number(3), action: .outage(milliseconds: 5_000)))
            let clients = try [warmClient(fixture), fixture.client(.sandbox)]
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
            clients[0].submit(try fixture.push())
            try clients[0].write()
            try clients[0].waitForEnd()
            #expect(throws: TestClient.Failure.ended) { try fixture.client() }
            #expect(try clients[1].answer(to: fixture.push(11)).status == 200)
            // The end of the outage is not to be seen from here but by trying.
            var isBack = false
            while !isBack {
                do {
                    isBack = try fixture.client().answer(to: fixture.push()).status == 200
                } catch TestClient.Failure.ended {}
            }
            #expect(fixture.simulator.log().count { $0.status == 0 } == 1)
        }

        @Test func `a port can be closed and opened again`() async throws {
            let fixture = try Fixture()
            let client = try warmClient(fixture)
            await fixture.simulator.closePort(of: .production)
            #expect(throws: TestClient.Failure.ended) { try fixture.client() }
            #expect(try client.answer(to: fixture.push()).status == 200)
            fixture.simulator.endConnections(of: .production)
            try client.waitForEnd()
            fixture.simulator.openPort(of: .production)
            await fixture.simulator.closePort(of: .sandbox)
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
            #expect(fixture.simulator.counts().openConnections >= 0)
        }

        @Test func `rules hold for a time, and after so many requests`() throws {
            let time = ManualTime(milliseconds: SimulatorOptions.systemMilliseconds())
            let fixture = try Fixture { options, _ in
                options.clock = { time.milliseconds }
                let shutdown = FaultAction.answer(status: 503, reason: "Shutdown")
                options.faults = [
                    FaultRule(when: .always.during(1000..<2000), action: shutdown),
                    FaultRule(when: .always.skipping(2).times(1), action: .answer(status: 500, reason: "Third")),
                ]
            }
            let client = try warmClient(fixture)
            time.milliseconds += 999
            #expect(try client.answer(to: fixture.push()).status == 200)
            time.milliseconds += 1
            #expect(try client.answer(to: fixture.push()).status == 503)
            time.milliseconds += 1000
            #expect(try (0..<2).map { _ in try client.answer(to: fixture.push()).status } == [500, 200])
        }
    }
}
