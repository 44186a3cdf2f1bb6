import APNs
import ArgumentParser
import Foundation
import Logging
import LonePipeline
import Model
import SQLiteStore
import Sending
import Store

/// Broadcast after broadcast in one process, at full speed, while the server misbehaves at random: memory and descriptors
/// must stay as they are, and the sums of every run must close.
struct Soak: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Send for minutes under random faults and watch memory, descriptors and sums.")

    @Option(help: "For how long; the last broadcast is sent to its end.") var seconds = 600
    @Option(help: "Devices of a broadcast.") var devices = 1_000_000
    @Option(help: "Lanes.") var lanes = 4
    @Option(help: "native or curl.") var transport = TransportKind.native
    @Option(help: "Of the faults: the same seed and order of requests give the same ones.") var seed: UInt64 = 1
    @Option(help: "Kill the sending process (SIGKILL) every so many seconds, and start it again.") var killEvery:
        Double?

    private enum Problem: Error, CustomStringConvertible {
        case unfinished(run: Int64, String)
        case unknown(run: Int64, Int)
        case sumsDoNotClose(run: Int64, [String])
        case descriptorsLeft(before: Int, after: Int)

        var description: String {
            switch self {
            case .unfinished(let run, let end): "run \(run) came to no end: \(end)"
            case .sumsDoNotClose(let run, let problems): "run \(run): \(problems.joined(separator: "; "))"
            case .unknown(let run, let count): "run \(run): \(count) unknown, although they may be sent again"
            case .descriptorsLeft(let before, let after): "\(before) descriptors at first, \(after) at the end"
            }
        }
    }

    func run() async throws {
        let folder = try BenchmarkFolder()
        defer { folder.remove() }
        Output.show(Machine.description)
        Output.show(
            try Child.output(of: ["preparation", "--store", folder.store, "--devices", "\(devices)"])
                .trimmingCharacters(in: .whitespacesAndNewlines))
        let target = try BenchmarkTarget.open(
            endpoint: nil, trust: nil, answerDelay: 0, directory: folder.path, faultSeed: seed)
        defer { target.close() }
        let sender = try BenchmarkSender(path: folder.store, journal: true)
        let kills = Kills(path: folder.store, target: target, lanes: lanes, transport: transport)
        try await soak(sender.store, sender, target, kills)
        if killEvery != nil { Output.show("killed \(kills.count) times") }
    }

    private func soak(
        _ store: SQLiteFileStore, _ sender: BenchmarkSender, _ target: BenchmarkTarget, _ kills: Kills
    ) async throws {
        let pipeline = sender.pipeline(
            try transport.make(trust: target.trust), target.endpoint, lanes: lanes, Self.logger,
            jitter: { Double.random(in: 0...1) })
        let watch = Stopwatch()
        var number = 0
        var first: Usage.Resources?
        while watch.seconds < Double(seconds) {
            number += 1
            let report = try await broadcast(number, store) { run in
                if let killEvery { return try await kills.send(run, every: killEvery) }
                return try await pipeline.execute(run, as: sender.actor) { _, _ in }
            }
            let resources = Usage.resources
            // By then the store has opened as many readers as it ever will.
            if number == 3 { first = resources }
            Output.show(
                String(
                    format: "%4.0f s  run %d: %d accepted, %d rejected, %d unknown of %d, %d requests; %@",
                    watch.seconds,
                    number, report.counts.accepted, report.counts.rejected, report.counts.unknown,
                    report.counts.audience, report.attempts, resources.description))
        }
        Output.show(
            String(
                format: "%d broadcasts, %d pushes/s over all, CPU %.1f us per push; the sums of each close", number,
                Int(Double(number * devices) / watch.seconds), watch.cpuSeconds * 1e6 / Double(number * devices)))
        let last = Usage.resources
        if let first, last.descriptors > first.descriptors {
            throw Problem.descriptorsLeft(before: first.descriptors, after: last.descriptors)
        }
    }

    private func broadcast(
        _ number: Int, _ store: SQLiteFileStore, _ send: (Run) async throws -> RunEnd
    ) async throws -> Report {
        let now = Timestamp(Date())
        let (run, _) = try await store.createRun(
            try BenchmarkCampaign.definition(plannedAt: now), occurrence: "soak-\(number)", now: now, by: "soak")
        var end = RunEnd.stoppedEarly
        // A run that an outage has paused is gone on with, as an operator would.
        for _ in 0..<10 where end != .finished {
            end = try await send(run)
        }
        guard end == .finished else { throw Problem.unfinished(run: run.id, "\(end)") }
        let check = try await store.check(run.id)
        guard check.problems.isEmpty, check.recounted.closes, check.recounted.audience == devices else {
            throw Problem.sumsDoNotClose(run: run.id, check.problems)
        }
        let report = try await store.report(run.id)
        guard report.counts.unknown == 0 else { throw Problem.unknown(run: run.id, report.counts.unknown) }
        // Kept as summaries, so that the store stays as large as it is.
        let ended = Timestamp(Date())
        _ = try await store.pruneOutcomes(finishedBefore: ended, dryRun: false, now: ended, by: "soak")
        return report
    }

    private static var logger: Logger {
        var logger = Logger(label: "soak")
        logger.logLevel = .critical
        return logger
    }
}

/// Sends in processes of their own that are killed again and again, until one comes to the end.
private final class Kills {
    private(set) var count = 0
    private let path: String
    private let target: BenchmarkTarget
    private let lanes: Int
    private let transport: TransportKind

    init(path: String, target: BenchmarkTarget, lanes: Int, transport: TransportKind) {
        self.path = path
        self.target = target
        self.lanes = lanes
        self.transport = transport
    }

    func send(_ run: Run, every seconds: Double) async throws -> RunEnd {
        while true {
            let sender = Process()
            sender.executableURL = Child.executable
            sender.arguments =
                [
                    "round", "run", "\(run.id)", "--store", path, "--transport", transport.rawValue, "--lanes",
                    "\(lanes)",
                ]
                + ["--pushes", "0", "--endpoint", target.endpoint.description]
                + (target.trust.map { ["--trust", $0] } ?? [])
            sender.standardInput = FileHandle.nullDevice
            let ended = AsyncStream.makeStream(of: Int32.self)
            sender.terminationHandler = { ended.continuation.yield($0.terminationStatus) }
            try sender.run()
            let killer = Task {
                try await Task.sleep(for: .seconds(seconds))
                kill(sender.processIdentifier, SIGKILL)
            }
            var ends = ended.stream.makeAsyncIterator()
            let status = await ends.next()
            killer.cancel()
            if sender.terminationReason == .uncaughtSignal {
                count += 1
            } else {
                return status == 0 ? .finished : .stoppedEarly
            }
        }
    }
}
