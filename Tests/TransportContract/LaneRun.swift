package import APNs
import APNsSimulator
import Platform
import Testing

/// A lane at work, with everything it answered.
package struct LaneRun {
    /// By tag; more than one for a tag is a fault of the lane.
    package var completions: [Int64: [PushCompletion]] = [:]
    package var error: TransportError?

    package init() {}

    /// Sends the batches, finishes, and gathers until the lane has ended.
    package static func of(_ lane: any Lane, _ batches: PushBatch...) async -> LaneRun {
        async let ended = end(of: lane)
        async let sent: Void = {
            for batch in batches { _ = await lane.send(batch) }
            lane.finish()
        }()
        var run = LaneRun()
        while let completions = await lane.completions() { run.take(completions) }
        await sent
        run.error = await ended
        return run
    }

    package static func end(of lane: any Lane) async -> TransportError? {
        do throws(TransportError) {
            try await lane.run()
            return nil
        } catch {
            return error
        }
    }

    package mutating func take(_ completions: [PushCompletion]) {
        for response in completions { self.completions[response.tag, default: []].append(response) }
    }

    /// True when exactly these tags were answered, each once.
    package func isComplete(_ tags: Range<Int>) -> Bool {
        completions.count == tags.count && tags.allSatisfy { completions[Int64($0)]?.count == 1 }
    }

    package func result(_ tag: Int) -> PushResult? { completions[Int64(tag)]?.first?.result }

    package func count(where matches: (PushResult) -> Bool) -> Int {
        completions.values.joined().count { matches($0.result) }
    }

    package var acceptedCount: Int { count { $0.status == 200 } }
}

extension PushResult {
    package var status: Int? {
        if case .answered(let answer) = self { answer.status } else { nil }
    }

    package var isUnknown: Bool {
        if case .unknown = self { true } else { false }
    }

    package var isNotSent: Bool {
        if case .notSent = self { true } else { false }
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
            case .cutOff(let status):
                #expect(processed == 1 && status != 200, "push \(number) was cut off and never processed")
            case .notSent:
                #expect(processed == 0, "push \(number) was processed and is called not sent")
            case .unknown, nil: break
            }
        }
    }
}
