package import APNs
import Histogram
import Synchronization

/// How long answers took, from the first byte written, over all lanes of a run.
package final class LatencyRecorder: Sendable {
    private let histogram = Mutex(
        Histogram<UInt32>(highestTrackableValue: 120_000_000, numberOfSignificantValueDigits: .two))

    package init() {}

    package func record(_ responses: [PushCompletion]) {
        histogram.withLock { histogram in
            for response in responses where response.latencyMicroseconds > 0 {
                histogram.record(UInt64(response.latencyMicroseconds))
            }
        }
    }

    /// Microseconds at this percentile (0 to 100); nil when nothing was answered.
    package func microseconds(atPercentile percentile: Double) -> Int? {
        histogram.withLock { histogram in
            histogram.totalCount == 0 ? nil : Int(histogram.valueAtPercentile(percentile))
        }
    }
}
