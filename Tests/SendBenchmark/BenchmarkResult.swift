import Foundation

/// What one round cost the client.
struct BenchmarkResult: Codable {
    var pushes: Int
    var seconds: Double
    var cpuSeconds: Double
    var p50Microseconds: Int
    var p99Microseconds: Int
    /// Nil: not known.
    var peakMegabytes: Double?
    /// From the start of a run until the first push is handed to a lane.
    var firstPushSeconds: Double?
    /// For the report of the finished run.
    var reportSeconds: Double?
    /// Pushes that were not answered 200.
    var failures: Int

    static let heading =
        "                     pushes/s   CPU us/push   x h2load   p50 ms   p99 ms   peak MB"
        + "   first push s   report s   not 200"

    var cpuMicrosecondsPerPush: Double { cpuSeconds * 1e6 / Double(pushes) }

    /// - Parameter baseline: CPU microseconds per push to compare with.
    func row(_ name: String, baseline: Double?) -> String {
        func column(_ value: Double?, _ width: Int, _ decimals: Int) -> String {
            let text = value.map { String(format: "%.\(decimals)f", $0) } ?? "-"
            return String(repeating: " ", count: max(0, width - text.count)) + text
        }
        return name.padding(toLength: 19, withPad: " ", startingAt: 0)
            + column(Double(pushes) / seconds, 10, 0) + column(cpuMicrosecondsPerPush, 14, 1)
            + column(baseline.map { cpuMicrosecondsPerPush / $0 }, 11, 1)
            + column(Double(p50Microseconds) / 1000, 9, 1) + column(Double(p99Microseconds) / 1000, 9, 1)
            + column(peakMegabytes, 10, 0) + column(firstPushSeconds, 15, 2) + column(reportSeconds, 11, 2)
            + column(Double(failures), 10, 0)
    }

    /// Each figure's own median.
    static func median(_ results: [BenchmarkResult]) -> BenchmarkResult {
        func middle<Value: Comparable>(_ value: (BenchmarkResult) -> Value) -> Value {
            results.map(value).sorted()[results.count / 2]
        }
        func middle(_ value: (BenchmarkResult) -> Double?) -> Double? {
            let known = results.compactMap(value).sorted()
            return known.isEmpty ? nil : known[known.count / 2]
        }
        return BenchmarkResult(
            pushes: middle(\.pushes), seconds: middle(\.seconds), cpuSeconds: middle(\.cpuSeconds),
            p50Microseconds: middle(\.p50Microseconds), p99Microseconds: middle(\.p99Microseconds),
            peakMegabytes: middle(\.peakMegabytes), firstPushSeconds: middle(\.firstPushSeconds),
            reportSeconds: middle(\.reportSeconds), failures: middle(\.failures))
    }
}
