import APNs
import APNsSimulator
import Testing

// What every transport promises under the faults of the simulator, counted from both sides.
extension TransportPromises {
    /// A fault in the middle of 300 pushes, and what may come of it.
    package struct FaultRow: Sendable, CustomStringConvertible {
        package var description: String
        var rules: [FaultRule]
        /// Pushes whose fate stays unknown, with a transport that knows its streams. Others may lose those in flight.
        var unknown: ClosedRange<Int> = 0...0
        /// Streams that the simulator refuses although the client kept to the limit.
        var mayRefuse = false
        /// Pushes that APNs answers with something else than 200.
        var rejected = 0

        init(
            _ description: String, _ rules: FaultRule..., unknown: ClosedRange<Int> = 0...0, mayRefuse: Bool = false,
            rejected: Int = 0
        ) {
            self.description = description
            self.rules = rules
            self.unknown = unknown
            self.mayRefuse = mayRefuse
            self.rejected = rejected
        }
    }

    private static let faultPushes = 300
    private static let inFlightMax = 100

    private static func at(_ number: Int, _ action: FaultAction) -> FaultRule {
        FaultRule(when: .number(number), action: action)
    }

    package static let goAways: [FaultRow] = FaultAction.LastStream.allCases.flatMap { last in
        [
            FaultRow("GOAWAY, last stream \(last)", at(120, .goAway(lastStream: last, reason: "Shutdown"))),
            FaultRow(
                "GOAWAY twice in plain text, last stream \(last)",
                at(120, .goAway(lastStream: last, reason: nil, text: "maintenance", isTwice: true))),
            FaultRow(
                "GOAWAY and the end, last stream \(last)",
                at(120, .goAway(lastStream: last, reason: nil, closes: true)), unknown: 0...inFlightMax),
        ]
    }

    package static let otherFaults: [FaultRow] = [
        FaultRow("a refused stream", at(120, .refuseStream)),
        FaultRow("every 10th stream refused", FaultRule(when: .every(10), action: .refuseStream)),
        FaultRow("a stream reset unprocessed", at(120, .reset(code: 2)), unknown: 1...1),
        FaultRow("a stream cancelled unprocessed", at(120, .reset(code: 8)), unknown: 1...1),
        FaultRow("an answer lost by reset", .answerLost(.number(120), by: .reset(code: 2)), unknown: 1...1),
        FaultRow("an answer lost by the end", .answerLost(.number(120)), unknown: 1...inFlightMax),
        FaultRow("an answer cut behind its headers", at(120, .cutAnswer)),
        FaultRow("one stream for a while", at(120, .streamLimit(1, forMilliseconds: 50)), mayRefuse: true),
        FaultRow("no stream for a while", at(120, .streamLimit(0, forMilliseconds: 50)), mayRefuse: true),
        FaultRow("seven streams for good", at(120, .streamLimit(7)), mayRefuse: true),
        FaultRow(
            "a burst of 5xx",
            FaultRule(
                when: FaultCondition.always.skipping(50).times(30),
                action: .answer(status: 503, reason: "ServiceUnavailable")), rejected: 30),
        FaultRow("an HTML page", at(120, .page(status: 502, body: "<html>Bad Gateway</html>")), rejected: 1),
        FaultRow("an unknown reason", at(120, .answer(status: 400, reason: "NewInOctober")), rejected: 1),
        FaultRow("late answers", FaultRule(when: .every(7), action: .delay(milliseconds: 20))),
        FaultRow("three dropped connects", .droppedConnect(FaultCondition.always.times(3))),
        FaultRow("an outage", at(120, .outage(milliseconds: 30)), unknown: 0...inFlightMax),
    ]

    package func `no push is lost, doubled or misjudged`(row: FaultRow) async throws {
        let scene = try LaneScene { options in
            options.faults = row.rules
            options.answerDelayMs = 1
        }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = Self.inFlightMax
            limits.connectAttemptsMax = 1000
            limits.reconnectAttemptsMax = 1000
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.faultPushes))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<Self.faultPushes))
        BothSides(run, scene).expectAgreement(over: Self.faultPushes)
        let unknown = run.count(where: \.isUnknown)
        #expect(run.count(where: \.isNotSent) == 0)
        #expect(run.acceptedCount == Self.faultPushes - row.rejected - unknown)
        if !row.mayRefuse { #expect(scene.simulator.counts().refusedStreams == 0) }
        if kind.knowsStreams {
            #expect(row.unknown.contains(unknown), "\(unknown) unknown")
        } else {
            #expect(unknown <= Self.inFlightMax, "\(unknown) unknown")
        }
    }

    package func `a connection that falls silent is replaced`() async throws {
        let scene = try LaneScene { $0.faults = [Self.at(120, .silentConnection)] }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = Self.inFlightMax
            // Whoever sends PING knows long before the deadline, the others by it.
            limits.requestDeadline = kind.knowsStreams ? .seconds(600) : .seconds(8)
            limits.silencePingInterval = .milliseconds(30)
            limits.pingDeadline = .seconds(8)
            limits.connectAttemptsMax = 1000
            limits.reconnectAttemptsMax = 1000
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.faultPushes))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<Self.faultPushes))
        BothSides(run, scene).expectAgreement(over: Self.faultPushes)
        #expect((1...Self.inFlightMax).contains(run.count(where: \.isUnknown)))
        #expect(scene.simulator.counts().connections == 2)
    }

    package func `a service that is away for long ends the lane with the rest unsent`() async throws {
        let scene = try LaneScene { $0.faults = [Self.at(120, .outage(milliseconds: 600_000))] }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = 1
            limits.reconnectAttemptsMax = 3
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.faultPushes))
        guard case .unreachable = run.error else {
            Issue.record("\(String(describing: run.error)); \(run.acceptedCount) accepted")
            return
        }
        #expect(run.isComplete(0..<Self.faultPushes))
        BothSides(run, scene).expectAgreement(over: Self.faultPushes)
        #expect(run.acceptedCount == 119)
        #expect(run.count(where: \.isUnknown) == 1)
        #expect(run.count(where: \.isNotSent) == Self.faultPushes - 120)
    }
}
