import Foundation

/// What one round cost this process.
struct BenchmarkResult {
    var seconds: Double
    var cpuSeconds: Double
    var p50Microseconds: Int
    var p99Microseconds: Int
    /// Since the process started.
    var peakMegabytes: Double
    /// Pushes that were not answered 200.
    var failures: Int

    static let heading =
        "                     pushes/s   CPU us/push   p50 ms   p99 ms   peak MB   not 200"

    func row(_ name: String, pushes: Int) -> String {
        func column(_ value: Double, _ width: Int, _ decimals: Int) -> String {
            let text = String(format: "%.\(decimals)f", value)
            return String(repeating: " ", count: max(0, width - text.count)) + text
        }
        return name.padding(toLength: 19, withPad: " ", startingAt: 0)
            + column(Double(pushes) / seconds, 10, 0) + column(cpuSeconds * 1e6 / Double(pushes), 14, 1)
            + column(Double(p50Microseconds) / 1000, 9, 1) + column(Double(p99Microseconds) / 1000, 9, 1)
            + column(peakMegabytes, 10, 0) + column(Double(failures), 10, 0)
    }

    /// Each figure's own median.
    static func median(_ results: [BenchmarkResult]) -> BenchmarkResult {
        func middle<Value: Comparable>(_ value: (BenchmarkResult) -> Value) -> Value {
            results.map(value).sorted()[results.count / 2]
        }
        return BenchmarkResult(
            seconds: middle(\.seconds), cpuSeconds: middle(\.cpuSeconds), p50Microseconds: middle(\.p50Microseconds),
            p99Microseconds: middle(\.p99Microseconds), peakMegabytes: middle(\.peakMegabytes),
            failures: middle(\.failures))
    }
}

/// Wall and CPU time of this process from a moment on.
struct Stopwatch {
    private let start = ContinuousClock.now
    private let cpuAtStart = Self.cpuSeconds()

    var seconds: Double {
        let passed = ContinuousClock.now - start
        return Double(passed.components.seconds) + Double(passed.components.attoseconds) / 1e18
    }

    var cpuSeconds: Double { Self.cpuSeconds() - cpuAtStart }

    private static func usage() -> rusage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage
    }

    private static func cpuSeconds() -> Double {
        let usage = usage()
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }

    static var peakMegabytes: Double { Double(usage().ru_maxrss) / 1024 }
}
