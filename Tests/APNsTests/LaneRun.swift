@testable import APNs

/// A lane at work, with everything it answered.
struct LaneRun {
    /// By tag; more than one for a tag is a fault of the lane.
    var responses: [Int64: [PushResponse]] = [:]
    var error: TransportError?

    /// Sends the batches, finishes, and gathers until the lane has ended.
    static func of(_ lane: any Lane, _ batches: PushBatch...) async -> LaneRun {
        async let ended = end(of: lane)
        async let sent: Void = {
            for batch in batches { _ = await lane.send(batch) }
            lane.finish()
        }()
        var run = LaneRun()
        while let responses = await lane.responses() { run.take(responses) }
        await sent
        run.error = await ended
        return run
    }

    static func end(of lane: any Lane) async -> TransportError? {
        do throws(TransportError) {
            try await lane.run()
            return nil
        } catch {
            return error
        }
    }

    mutating func take(_ responses: [PushResponse]) {
        for response in responses { self.responses[response.tag, default: []].append(response) }
    }

    /// True when exactly these tags were answered, each once.
    func isComplete(_ tags: Range<Int>) -> Bool {
        responses.count == tags.count && tags.allSatisfy { responses[Int64($0)]?.count == 1 }
    }

    func result(_ tag: Int) -> PushResult? { responses[Int64(tag)]?.first?.result }

    func count(where matches: (PushResult) -> Bool) -> Int {
        responses.values.joined().count { matches($0.result) }
    }

    var acceptedCount: Int { count { $0.status == 200 } }
}

extension PushResult {
    var status: Int? {
        if case .answered(let answer) = self { answer.status } else { nil }
    }

    var isUnknown: Bool {
        if case .unknown = self { true } else { false }
    }

    var isNotSent: Bool {
        if case .notSent = self { true } else { false }
    }
}
