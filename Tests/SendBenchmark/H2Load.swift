import APNs
import Foundation

/// nghttp2's own load generator: what an HTTP/2 client has to spend at least, with the same bytes in every push.
struct H2Load {
    static let name = "h2load"
    private static let folders = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]

    private let executable: URL
    private let target: BenchmarkTarget
    private let clients: Int
    private let folder: String

    /// Nil where it is not installed.
    init?(target: BenchmarkTarget, clients: Int, folder: String) {
        let paths = Self.folders.map { $0 + "/" + Self.name }
        guard let path = paths.first(where: FileManager.default.isExecutableFile) else { return nil }
        executable = URL(fileURLWithPath: path)
        self.target = target
        self.clients = clients
        self.folder = folder
    }

    /// One run for time and CPU, another that logs each request for the latencies.
    func run(pushes: Int) throws -> BenchmarkResult {
        let body = folder + "/h2load.json"
        try TransportBench.payload(1).withUnsafeBytes { try Data($0).write(to: URL(fileURLWithPath: body)) }
        let arguments = arguments(pushes, body: body)
        let cpuBefore = Usage.children.cpuSeconds
        let watch = ContinuousClock.now
        let report = try Child.output(of: arguments, executable: executable)
        let seconds = (ContinuousClock.now - watch) / .seconds(1)
        let cpuSeconds = Usage.children.cpuSeconds - cpuBefore
        let log = folder + "/h2load.log"
        _ = try Child.output(of: ["--log-file", log] + arguments, executable: executable)
        let latencies = try Self.latencies(log)
        return BenchmarkResult(
            pushes: pushes, seconds: seconds, cpuSeconds: cpuSeconds, p50Microseconds: latencies.p50,
            p99Microseconds: latencies.p99, failures: pushes - Self.succeeded(report))
    }

    private func arguments(_ pushes: Int, body: String) -> [String] {
        let headers = [
            "apns-topic: com.example.wendercast", "apns-push-type: alert", "apns-priority: 10",
            "apns-expiration: 1900000000", "apns-collapse-id: bench-1", "content-type: application/json",
            "apns-id: 12345678-1234-4234-8234-123456789012",
            // As long as a provider token.
            "authorization: bearer " + String(repeating: "x", count: 190),
        ]
        let token = TransportBench.token(1).map { String(format: "%02x", $0) }.joined()
        return ["-n", "\(pushes)", "-c", "\(clients)", "-t", "1", "-m", "1000", "-d", body]
            + headers.flatMap { ["-H", $0] } + ["https://\(target.endpoint)/3/device/\(token)"]
    }

    /// Of `requests: 1000 total, 1000 started, 1000 done, 1000 succeeded, ...`.
    private static func succeeded(_ report: String) -> Int {
        let line = report.split(separator: "\n").first { $0.hasPrefix("requests:") } ?? ""
        let part = line.split(separator: ",").first { $0.hasSuffix(" succeeded") } ?? ""
        return part.split(separator: " ").first.flatMap { Int($0) } ?? 0
    }

    /// Third column: microseconds.
    private static func latencies(_ path: String) throws -> (p50: Int, p99: Int) {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try FileManager.default.removeItem(atPath: path)
        let times = text.utf8.split(separator: UInt8(ascii: "\n")).compactMap { line in
            line.split(separator: UInt8(ascii: "\t")).last.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
        }.sorted()
        guard !times.isEmpty else { return (0, 0) }
        return (times[times.count / 2], times[times.count * 99 / 100])
    }
}
