package import APNs
package import CoreMetrics
import Metrics
package import Model

/// Counts what APNs answers on one lane, a batch at a time. Where no metrics backend is installed it does nothing.
package struct SendMeter {
    private struct Answer: Hashable {
        var status: String
        var reason: String
    }

    private let isOn: Bool
    private let factory: any MetricsFactory
    private let dimensions: [(String, String)]
    private let lane: [(String, String)]
    private let latency: Timer
    private let inFlight: Meter
    private let streamLimit: Meter
    private let queued: Meter
    private var counters: [Answer: Counter] = [:]

    /// - Parameter lane: as it is named, its environment first: `production-1`.
    package init(_ campaign: Campaign, lane: String, factory: any MetricsFactory = MetricsSystem.factory) {
        isOn = !(factory is NOOPMetricsHandler)
        self.factory = factory
        let environment = String(lane.prefix { $0 != "-" })
        let place = [("topic", campaign.topic), ("environment", environment)]
        dimensions = place + [("push_type", campaign.pushType.rawValue)]
        self.lane = place + [("lane", lane)]
        latency = Timer(label: "fanfare_push_latency_seconds", dimensions: place, factory: factory)
        inFlight = Meter(label: "fanfare_lane_in_flight", dimensions: self.lane, factory: factory)
        streamLimit = Meter(label: "fanfare_lane_stream_limit", dimensions: self.lane, factory: factory)
        queued = Meter(label: "fanfare_lane_queued", dimensions: self.lane, factory: factory)
    }

    package mutating func record(_ responses: [PushCompletion], _ status: LaneStatus) {
        guard isOn else { return }
        var counts: [Answer: Int64] = [:]
        var accepted: Int64 = 0
        for response in responses {
            if response.latencyMicroseconds > 0 { latency.recordNanoseconds(response.latencyMicroseconds * 1000) }
            if case .answered(let answer) = response.result, answer.status == 200 {
                accepted += 1
            } else {
                counts[Self.answer(response.result), default: 0] += 1
            }
        }
        if accepted > 0 { counts[Answer(status: "200", reason: ""), default: 0] += accepted }
        for (answer, count) in counts { counter(answer).increment(by: count) }
        inFlight.set(status.inFlight)
        streamLimit.set(status.streamLimit)
        queued.set(status.queued)
    }

    /// The lane is over: what it had in flight is no more.
    package func end() {
        guard isOn else { return }
        for meter in [inFlight, streamLimit, queued] { meter.destroy() }
    }

    private mutating func counter(_ answer: Answer) -> Counter {
        if let known = counters[answer] { return known }
        let counter = Counter(
            label: "fanfare_pushes_total",
            dimensions: dimensions + [("status", answer.status), ("reason", answer.reason)], factory: factory)
        counters[answer] = counter
        return counter
    }

    private static func answer(_ result: PushResult) -> Answer {
        switch result {
        case .answered(let answer):
            // A reason of nobody knows whom must not make a series of its own.
            let reason =
                switch answer.reason {
                case nil: ""
                case .other: "other"
                case let known?: known.description
                }
            return Answer(status: "\(answer.status)", reason: reason)
        case .unknown(let fault): return Answer(status: "unknown", reason: fault.description)
        case .notSent(let fault): return Answer(status: "not_sent", reason: fault.description)
        }
    }
}
