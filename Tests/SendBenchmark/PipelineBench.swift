import APNs
import Foundation
import Logging
import LonePipeline
import Model
import SQLiteStore
import Sending
import Store

/// A broadcast from SQLite rows to recorded outcomes, the way `fanfare run` does it.
struct PipelineBench {
    private let transport: any Transport
    private let endpoint: PushEndpoint
    private let lanes: Int
    private let devices: Int
    private let store: SQLiteFileStore
    private let sender: BenchmarkSender

    private enum Problem: Error {
        case wrongAccount([String])
    }

    /// - Parameter journal: as `fanfare run` does; without one, what it costs can be seen.
    init(
        store: String, transport: any Transport, endpoint: PushEndpoint, lanes: Int, devices: Int, journal: Bool
    ) throws {
        self.transport = transport
        self.endpoint = endpoint
        self.lanes = lanes
        self.devices = devices
        sender = try BenchmarkSender(path: store, journal: journal)
        self.store = sender.store
    }

    func run() async throws -> BenchmarkResult {
        let now = Timestamp(Date())
        let (run, _) = try await store.createRun(
            try BenchmarkCampaign.definition(plannedAt: now), occurrence: UUID().uuidString, now: now, by: "benchmark")
        nonisolated(unsafe) var latencies: LatencyRecorder?
        let watch = Stopwatch()
        let first = FirstPush(transport)
        let pipeline = sender.pipeline(first, endpoint, lanes: lanes, Logger(label: "bench"), jitter: { 0.5 })
        _ = try await pipeline.execute(run, as: sender.actor) { latencies = $1 }
        let seconds = watch.seconds
        let cpuSeconds = watch.cpuSeconds
        let peak = Usage.peakMegabytes
        let reportWatch = Stopwatch()
        let report = try await store.report(run.id)
        let reportSeconds = reportWatch.seconds
        let check = try await store.check(run.id)
        guard check.problems.isEmpty, report.counts.audience == devices else {
            throw Problem.wrongAccount(check.problems)
        }
        return BenchmarkResult(
            pushes: devices, seconds: seconds, cpuSeconds: cpuSeconds,
            p50Microseconds: latencies?.microseconds(atPercentile: 50) ?? 0,
            p99Microseconds: latencies?.microseconds(atPercentile: 99) ?? 0, peakMegabytes: peak,
            firstPushSeconds: first.seconds, reportSeconds: reportSeconds,
            failures: devices - report.counts.accepted)
    }
}
