import CoreMetrics
import Synchronization

/// One series of a family, with its current value.
protocol MetricSeries: AnyObject, Sendable {
    static var type: String { get }
    func write(_ name: String, _ labels: [MetricLabel], to text: inout PrometheusText)
}

/// A counter of whole numbers.
final class CounterSeries: CounterHandler, MetricSeries {
    static let type = "counter"
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) { count.add(max(0, amount), ordering: .relaxed) }
    func reset() { count.store(0, ordering: .relaxed) }

    func write(_ name: String, _ labels: [MetricLabel], to text: inout PrometheusText) {
        text.sample(name, labels, Double(count.load(ordering: .relaxed)))
    }
}

final class FloatingPointCounterSeries: FloatingPointCounterHandler, MetricSeries {
    static let type = "counter"
    private let sum = Mutex(0.0)

    func increment(by amount: Double) {
        guard amount.isFinite, amount > 0 else { return }
        sum.withLock { $0 += amount }
    }

    func reset() { sum.withLock { $0 = 0 } }

    func write(_ name: String, _ labels: [MetricLabel], to text: inout PrometheusText) {
        text.sample(name, labels, sum.withLock { $0 })
    }
}

/// A gauge, whose value can be set, increased and decreased.
final class GaugeSeries: MeterHandler, RecorderHandler, MetricSeries {
    static let type = "gauge"
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(_ name: String, _ labels: [MetricLabel], to text: inout PrometheusText) {
        text.sample(name, labels, value.withLock { $0 })
    }
}

/// A histogram, which counts the values up to each bound. Durations are in seconds.
final class HistogramSeries: TimerHandler, RecorderHandler, MetricSeries {
    static let type = "histogram"
    /// The bounds in seconds, from the fastest response on the same machine to the deadline of a request.
    static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20]

    private struct State {
        /// The number of values by the first bound that is not below the value. The last element counts values above
        /// all bounds.
        var counts = [Int64](repeating: 0, count: bounds.count + 1)
        var sum = 0.0
    }

    private let state = Mutex(State())

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = Self.bounds.firstIndex { value <= $0 } ?? Self.bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func preferDisplayUnit(_ unit: TimeUnit) {}

    func write(_ name: String, _ labels: [MetricLabel], to text: inout PrometheusText) {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        var below: Int64 = 0
        for (bound, count) in zip(Self.bounds + [.infinity], counts) {
            below += count
            text.sample("\(name)_bucket", labels + [MetricLabel("le", PrometheusText.number(bound))], Double(below))
        }
        text.sample("\(name)_sum", labels, sum)
        text.sample("\(name)_count", labels, Double(below))
    }
}
