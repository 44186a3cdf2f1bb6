import Model
import Store
import Testing

/// Stores keep the buckets by their numbers: what a number stands for never changes.
struct LatencyHistogramTests {
    @Test(arguments: [
        (0, 0), (1, 0), (999, 0), (1_000, 0), (1_249, 0), (1_250, 1), (1_999, 3), (2_000, 4), (2_500, 5), (4_000, 8),
        (10_000, 13), (100_000, 26), (1_000_000, 39), (65_535_999, 63), (65_536_000, 63), (9_000_000_000, 63),
    ])
    func `an answer is counted in the bucket of its time`(microseconds: Int64, bucket: Int) {
        #expect(LatencyHistogram.bucket(microseconds) == bucket)
    }

    @Test func `a percentile is within a quarter of what it stands for`() throws {
        var time: Int64 = 1_000
        while time < 60_000_000 {
            var histogram = LatencyHistogram()
            histogram.add(microseconds: time)
            let told = try #require(histogram.milliseconds(atShare: 0.99))
            #expect(abs(told * 1000 / Double(time) - 1) <= 0.25, "\(time)")
            time += time / 7
        }
        #expect(LatencyHistogram().milliseconds(atShare: 0.5) == nil)
    }

    @Test func `the median and the slowest hundredth are told apart`() throws {
        var histogram = LatencyHistogram()
        for _ in 0..<985 { histogram.add(microseconds: 20_000) }
        for _ in 0..<15 { histogram.add(microseconds: 2_000_000) }
        #expect(try #require(histogram.milliseconds(atShare: 0.5)) < 25)
        #expect(try #require(histogram.milliseconds(atShare: 0.98)) < 25)
        #expect(try #require(histogram.milliseconds(atShare: 0.99)) > 1_500)
        var doubled = histogram
        doubled.add(histogram)
        #expect(doubled.total == 2_000 && doubled.milliseconds(atShare: 0.5) == histogram.milliseconds(atShare: 0.5))
    }
}
