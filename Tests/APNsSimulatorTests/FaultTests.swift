import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Faults {
        private func fixture(_ rules: FaultRule...) throws -> Fixture {
            try Fixture { options, _ in options.faults = rules }
        }

        @Test func `one token can be answered with anything`() throws {
            let fixture = try fixture(
                FaultRule(when: .token(Fixture.token(2)), action: .answer(status: 429, reason: "TooManyRequests")),
                FaultRule(when: .token(Fixture.token(3)), action: .answer(status: 500, reason: "NeverHeardOf")))
            let client = try fixture.client()
            let answers = try [1, 2, 3, 1].map { try client.answer(to: fixture.push($0)) }
            #expect(answers.map(\.status) == [200, 429, 500, 200])
            #expect(answers.map(\.reason) == [nil, "TooManyRequests", "NeverHeardOf", nil])
            #expect(fixture.simulator.counts().faults == 2)
            #expect(fixture.simulator.log().map(\.fault) == [nil, "answer", "answer", nil])
        }

        @Test(
            arguments: [
                (FaultCondition.number(3), [3]), (.every(3), [3, 6, 9]), (.every(3).times(2), [3, 6]), (.rate(0), []),
                (.always.times(1), [1]), (.rate(1).times(4), [1, 2, 3, 4]),
            ] as [(FaultCondition, [Int])])
        func `a rule takes the requests it names`(condition: FaultCondition, taken: [Int]) throws {
            let fixture = try fixture(FaultRule(when: condition, action: .answer(status: 503, reason: "Shutdown")))
            let client = try fixture.client()
            let failed = try (1...10).filter { _ in try client.answer(to: fixture.push()).status == 503 }
            #expect(failed == taken)
        }

        @Test func `a rate is the same for the same seed`() throws {
            let rounds = try (0..<2).map { _ in
                let fixture = try fixture(FaultRule(when: .rate(0.3), action: .answer(status: 503, reason: "Shutdown")))
                let client = try fixture.client()
                return try (1...60).filter { _ in try client.answer(to: fixture.push()).status == 503 }
            }
            #expect(rounds[0] == rounds[1])
            #expect((8...30).contains(rounds[0].count))
        }

        @Test func `an answer can be lost after the push was accepted`() throws {
            let fixture = try fixture(
                FaultRule(when: .number(2), moment: .afterChecks, action: .reset(code: 2)))
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let lost = client.submit(try fixture.push())
            try client.wait { $0.resets[lost] != nil }
            #expect(client.resets == [lost: 2])
            #expect(fixture.simulator.counts().accepted == 2)
            #expect(fixture.simulator.log()[1].status == 200)
            #expect(fixture.simulator.log()[1].fault == "reset")
        }

        @Test func `a stream can be refused before it is looked at`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .reset(code: 7)))
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let refused = client.submit(try fixture.push())
            try client.wait { $0.resets[refused] != nil }
            #expect(client.resets == [refused: 7])
            #expect(fixture.simulator.counts().accepted == 1)
            #expect(fixture.simulator.log()[1].status == 0)
        }

        @Test(arguments: [FaultAction.close, .reset(code: 2), .silence, .silentConnection, .outage(milliseconds: 1)])
        func `a lost answer is told apart from one that was given`(by action: FaultAction) throws {
            let fixture = try fixture(.answerLost(.number(2), by: action))
            let client = try fixture.client()
            let given = try fixture.push(1).with("apns-id", Self.id(1))
            let lost = try fixture.push(2).with("apns-id", Self.id(2))
            #expect(try client.answer(to: given).status == 200)
            client.submit(lost)
            try client.write()
            try fixture.simulator.wait { $0.requests == 2 }
            let log = fixture.simulator.log()
            #expect(log.map(\.status) == [200, 200])
            #expect(log.map(\.isAnswerLost) == [false, true])
            #expect(log.map(\.fault) == [nil, action.name])
            let tallies = log.talliesByID
            #expect(tallies[Self.id(1)] == Self.tally(accepted: 1))
            #expect(tallies[Self.id(2)] == Self.tally(accepted: 1, lost: 1))
            #expect(log.talliesByToken[Fixture.hex(2)] == Self.tally(accepted: 1, lost: 1))
            #expect(fixture.simulator.counts().lostAnswers == 1)
        }

        @Test func `answers that wait when the connection ends are lost`() throws {
            let fixture = try Fixture { options, _ in
                options.answerDelayMs = 20
                options.faults = [FaultRule(when: .number(6), action: .close)]
            }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits.count == 2 }
            for number in 1...5 { client.submit(try fixture.push(number).with("apns-id", Self.id(number))) }
            try client.write()
            try client.waitForEnd()
            let tallies = fixture.simulator.log().talliesByID
            #expect((1...4).allSatisfy { tallies[Self.id($0)] == Self.tally(accepted: 1, lost: 1) })
            #expect(tallies[Self.id(5)] == Self.tally(untouched: 1))
            #expect(fixture.simulator.counts().lostAnswers == 4)
        }

        @Test func `a delay before every answer keeps their order and loses none`() throws {
            let fixture = try Fixture { options, _ in options.answerDelayMs = 20 }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            try client.wait { $0.streamLimits.count == 2 }
            let started = ContinuousClock.now
            let streams = try (0..<500).map { _ in client.submit(try fixture.push()) }
            try client.wait { client in streams.allSatisfy { client.answers[$0]?.isEnded == true } }
            #expect(ContinuousClock.now - started >= .milliseconds(20))
            #expect(fixture.simulator.counts().accepted == 501)
            fixture.simulator.setAnswerDelay(milliseconds: 0)
            #expect(try client.answer(to: fixture.push()).status == 200)
        }

        private static func id(_ number: Int) -> String { "ec1bf194-b3b2-424a-89aa-5be6b7e3e5f\(number)" }

        private static func tally(accepted: Int = 0, lost: Int = 0, untouched: Int = 0) -> RequestTally {
            var tally = RequestTally()
            (tally.accepted, tally.lost, tally.untouched) = (accepted, lost, untouched)
            return tally
        }

        @Test func `silence leaves one stream open and answers the others`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .silence))
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let silent = client.submit(try fixture.push())
            #expect(try client.answer(to: fixture.push()).status == 200)
            #expect(client.answers[silent]?.isEnded == false)
            #expect(fixture.simulator.log()[2].openStreams == 2)
        }

        @Test func `delayed answers come later, in the order of their times`() throws {
            let fixture = try Fixture { options, _ in
                options.faults = [FaultRule(when: .number(2), action: .delay(milliseconds: 2_000))]
                options.registry.setDelay(token: Fixture.token(2), environment: .production, milliseconds: 60)
            }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let started = ContinuousClock.now
            let slow = client.submit(try fixture.push())
            let middle = client.submit(try fixture.push(2))
            let quick = client.submit(try fixture.push())
            try client.wait { $0.answers[middle]?.isEnded == true }
            #expect(client.answers[quick]?.isEnded == true)
            #expect(client.answers[slow]?.isEnded == false)
            try client.wait { $0.answers[slow]?.isEnded == true }
            #expect(ContinuousClock.now - started >= .milliseconds(2_000))
        }

        @Test(
            arguments: [
                (FaultAction.LastStream.none, Int32(0), false), (.before, 1, false), (.this, 3, true),
                (.all, .max, true),
            ] as [(FaultAction.LastStream, Int32, Bool)])
        func `GOAWAY names its last stream and answers what it covers`(
            last: FaultAction.LastStream, stream: Int32, isAnswered: Bool
        ) throws {
            let fixture = try fixture(
                FaultRule(when: .number(2), action: .goAway(lastStream: last, reason: "Shutdown")))
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let covered = client.submit(try fixture.push())
            try client.write()
            try client.waitForEnd()
            // A GOAWAY that permits all streams is followed by one with the true last stream.
            let announced = stream == .max ? [stream, covered] : [stream]
            #expect(client.goAways == announced.map { .init(lastStream: $0, debugData: #"{"reason":"Shutdown"}"#) })
            #expect(client.answers[covered]?.isEnded == isAnswered)
        }

        @Test func `a connection can end without a word`() throws {
            let fixture = try fixture(FaultRule(when: .number(2), action: .close))
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let lost = client.submit(try fixture.push())
            try client.write()
            try client.waitForEnd()
            #expect(client.answers[lost]?.isEnded == false)
            #expect(client.goAways.isEmpty)
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
        }

        @Test func `rules can be replaced while the simulator runs`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            fixture.simulator.setFaults([FaultRule(when: .always, action: .answer(status: 503, reason: "Shutdown"))])
            #expect(try client.answer(to: fixture.push()).status == 503)
            fixture.simulator.setFaults([])
            #expect(try client.answer(to: fixture.push()).status == 200)
        }
    }
}
