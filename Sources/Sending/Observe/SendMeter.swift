package import APNs
package import CoreMetrics
import Histogram
import Metrics
package import Model
import Synchronization

/// Counts the results of one lane's pushes, one batch at a time. Does nothing if no metrics backend is installed.
package struct SendMeter {
    private struct Labels: Hashable {
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
    private var counters: [Labels: Counter] = [:]

    /// - Parameter lane: the lane's name, which starts with its environment: `production-1`.
    package init(_ campaign: Campaign, lane: String, factory: any MetricsFactory = MetricsSystem.factory) {
        isOn = !(factory is NOOPMetricsHandler)
        self.factory = factory
        let environment = String(lane.prefix { $0 != "-" })
        let target = [("topic", campaign.topic), ("environment", environment)]
        dimensions = target + [("push_type", campaign.pushType.rawValue)]
        self.lane = target + [("lane", lane)]
        latency = Timer(label: "fanfare_push_latency_seconds", dimensions: target, factory: factory)
        inFlight = Meter(label: "fanfare_lane_in_flight", dimensions: self.lane, factory: factory)
        streamLimit = Meter(label: "fanfare_lane_stream_limit", dimensions: self.lane, factory: factory)
        queued = Meter(label: "fanfare_lane_queued", dimensions: self.lane, factory: factory)
    }

    package mutating func record(_ completions: [PushCompletion], _ status: LaneStatus) {
        guard isOn else { return }
        var counts: [Labels: Int64] = [:]
        var accepted: Int64 = 0
        for completion in completions {
            if completion.latencyMicroseconds > 0 { latency.recordNanoseconds(completion.latencyMicroseconds * 1000) }
            if case .answered(let response) = completion.result, response.status == 200 {
                accepted += 1
            } else {
                counts[Self.labels(completion.result), default: 0] += 1
            }
        }
        if accepted > 0 { counts[Labels(status: "200", reason: ""), default: 0] += accepted }
        for (labels, count) in counts { counter(labels).increment(by: count) }
        inFlight.set(status.inFlight)
        streamLimit.set(status.streamLimit)
        queued.set(status.queued)
    }

    /// Removes the lane's gauges, because the lane has ended.
    package func end() {
        guard isOn else { return }
        for meter in [inFlight, streamLimit, queued] { meter.destroy() }
    }

    private mutating func counter(_ labels: Labels) -> Counter {
        if let known = counters[labels] { return known }
        let counter = Counter(
            label: "fanfare_pushes_total",
            dimensions: dimensions + [("status", labels.status), ("reason", labels.reason)], factory: factory)
        counters[labels] = counter
        return counter
    }

    private static func labels(_ result: PushResult) -> Labels {
        switch result {
        case .answered(let response):
            // Text from the server must not create a new time series.
            let reason =
                switch response.reason {
                case nil: ""
                case .other: "other"
                case let known?: known.description
                }
            return Labels(status: "\(response.status)", reason: reason)
        case .cutOff(let status): return Labels(status: "\(status)", reason: "cut_off")
        case .unknown(let fault): return Labels(status: "unknown", reason: fault.description)
        case .notSent(let fault): return Labels(status: "not_sent", reason: fault.description)
        }
    }
}

/// The meters of one lane. A lane serves several runs, and counts by each run's topic and push type.
struct LaneMeters {
    private struct Kind: Hashable {
        var topic: String
        var pushType: PushType
    }

    private let lane: String
    private var meters: [Kind: SendMeter] = [:]

    init(lane: String) {
        self.lane = lane
    }

    mutating func record(_ completions: [PushCompletion], _ status: LaneStatus, of campaign: Campaign) {
        let kind = Kind(topic: campaign.topic, pushType: campaign.pushType)
        meters[kind, default: SendMeter(campaign, lane: lane)].record(completions, status)
    }

    /// Removes the lane's gauges, because the lane has ended.
    func end() {
        for meter in meters.values { meter.end() }
    }
}

/// The latency of responses over all lanes of a run, measured from the first byte written of the request.
package final class LatencyRecorder: Sendable {
    private let histogram = Mutex(
        Histogram<UInt32>(highestTrackableValue: 120_000_000, numberOfSignificantValueDigits: .two))

    package init() {}

    package func record(_ completions: [PushCompletion]) {
        histogram.withLock { histogram in
            for completion in completions where completion.latencyMicroseconds > 0 {
                histogram.record(UInt64(completion.latencyMicroseconds))
            }
        }
    }

    /// Returns the microseconds at this percentile (0 to 100), or `nil` if no response was recorded.
    package func microseconds(atPercentile percentile: Double) -> Int? {
        histogram.withLock { histogram in
            histogram.totalCount == 0 ? nil : Int(histogram.valueAtPercentile(percentile))
        }
    }
}
