import APNsSimulator
import Testing

@testable import APNs

/// What every transport promises under the faults of the simulator, counted from both sides.
@Suite(.timeLimit(.minutes(2)))
struct TransportFaultTests {
    /// A fault in the middle of 300 pushes, and what may come of it.
    struct Row: Sendable, CustomStringConvertible {
        var description: String
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

    private static let pushes = 300
    private static let inFlightMax = 100

    private static func at(_ number: Int, _ action: FaultAction) -> FaultRule {
        FaultRule(when: .number(number), action: action)
    }

    static let goAways: [Row] = FaultAction.LastStream.allCases.flatMap { last in
        [
            Row("GOAWAY, last stream \(last)", at(120, .goAway(lastStream: last, reason: "Shutdown"))),
            Row(
                "GOAWAY twice in plain text, last stream \(last)",
                at(120, .goAway(lastStream: last, reason: nil, text: "maintenance", isTwice: true))),
            Row(
                "GOAWAY and the end, last stream \(last)",
                at(120, .goAway(lastStream: last, reason: nil, closes: true)), unknown: 0...inFlightMax),
        ]
    }

    static let others: [Row] = [
        Row("a refused stream", at(120, .refuseStream)),
        Row("every 10th stream refused", FaultRule(when: .every(10), action: .refuseStream)),
        Row("a stream reset unprocessed", at(120, .reset(code: 2)), unknown: 1...1),
        Row("a stream cancelled unprocessed", at(120, .reset(code: 8)), unknown: 1...1),
        Row("an answer lost by reset", .answerLost(.number(120), by: .reset(code: 2)), unknown: 1...1),
        Row("an answer lost by the end", .answerLost(.number(120)), unknown: 1...inFlightMax),
        Row("an answer cut behind its headers", at(120, .cutAnswer)),
        Row("one stream for a while", at(120, .streamLimit(1, forMilliseconds: 50)), mayRefuse: true),
        Row("no stream for a while", at(120, .streamLimit(0, forMilliseconds: 50)), mayRefuse: true),
        Row("seven streams for good", at(120, .streamLimit(7)), mayRefuse: true),
        Row(
            "a burst of 5xx",
            FaultRule(
                when: FaultCondition.always.skipping(50).times(30),
                action: .answer(status: 503, reason: "ServiceUnavailable")), rejected: 30),
        Row("an HTML page", at(120, .page(status: 502, body: "<html>Bad Gateway</html>")), rejected: 1),
        Row("an unknown reason", at(120, .answer(status: 400, reason: "NewInOctober")), rejected: 1),
        Row("late answers", FaultRule(when: .every(7), action: .delay(milliseconds: 20))),
        Row("three dropped connects", .droppedConnect(FaultCondition.always.times(3))),
        Row("an outage", at(120, .outage(milliseconds: 30)), unknown: 0...inFlightMax),
    ]

    @Test(arguments: TransportKind.all, goAways + others)
    func `no push is lost, doubled or misjudged`(kind: TransportKind, row: Row) async throws {
        let scene = try LaneScene { options in
            options.faults = row.rules
            options.answerDelayMs = 1
        }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = Self.inFlightMax
            limits.connectAttemptsMax = 1000
            limits.reconnectAttemptsMax = 1000
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.pushes))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<Self.pushes))
        BothSides(run, scene).expectAgreement(over: Self.pushes)
        let unknown = run.count(where: \.isUnknown)
        #expect(run.count(where: \.isNotSent) == 0)
        #expect(run.acceptedCount == Self.pushes - row.rejected - unknown)
        if !row.mayRefuse { #expect(scene.simulator.counts().refusedStreams == 0) }
        if kind.knowsStreams {
            #expect(row.unknown.contains(unknown), "\(unknown) unknown")
        } else {
            #expect(unknown <= Self.inFlightMax, "\(unknown) unknown")
        }
    }

    @Test(arguments: TransportKind.all)
    func `a connection that falls silent is replaced`(kind: TransportKind) async throws {
        let scene = try LaneScene { $0.faults = [Self.at(120, .silentConnection)] }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = Self.inFlightMax
            // Whoever sends PING knows long before the deadline, the others by it.
            limits.requestDeadline = kind.knowsStreams ? .seconds(600) : .seconds(2)
            limits.silencePingInterval = .milliseconds(30)
            limits.pingDeadline = .seconds(2)
            limits.connectAttemptsMax = 1000
            limits.reconnectAttemptsMax = 1000
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.pushes))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<Self.pushes))
        BothSides(run, scene).expectAgreement(over: Self.pushes)
        #expect((1...Self.inFlightMax).contains(run.count(where: \.isUnknown)))
        #expect(scene.simulator.counts().connections == 2)
    }

    @Test(arguments: TransportKind.all)
    func `a service that is away for long ends the lane with the rest unsent`(kind: TransportKind) async throws {
        let scene = try LaneScene { $0.faults = [Self.at(120, .outage(milliseconds: 600_000))] }
        let lane = scene.lane(kind) { limits in
            limits.streamsMax = 1
            limits.reconnectAttemptsMax = 3
        }
        let run = await LaneRun.of(lane, LaneScene.batch(0..<Self.pushes))
        guard case .unreachable = run.error else {
            Issue.record("\(String(describing: run.error)); \(run.acceptedCount) accepted")
            return
        }
        #expect(run.isComplete(0..<Self.pushes))
        BothSides(run, scene).expectAgreement(over: Self.pushes)
        #expect(run.acceptedCount == 119)
        #expect(run.count(where: \.isUnknown) == 1)
        #expect(run.count(where: \.isNotSent) == Self.pushes - 120)
    }
}

/// A run and the simulator's log of it: no push may be processed twice, and what the run says of each must be so.
struct BothSides {
    private let run: LaneRun
    private let tallies: [String: RequestTally]

    init(_ run: LaneRun, _ scene: LaneScene) {
        self.run = run
        tallies = scene.simulator.log().talliesByID
    }

    func expectAgreement(over pushes: Int) {
        for number in 0..<pushes {
            let tally = tallies[LaneScene.push(number).id.description] ?? RequestTally()
            let processed = tally.accepted + tally.refused
            #expect(processed <= 1, "push \(number) was processed \(processed) times")
            switch run.result(number) {
            case .answered(let answer):
                #expect(processed == 1, "push \(number) was answered \(answer.status) and never processed")
            case .notSent:
                #expect(processed == 0, "push \(number) was processed and is called not sent")
            case .unknown, nil: break
            }
        }
    }
}
