import ArgumentParser
import Foundation

@main
struct SendBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures sending against a server in another process: the transport alone, and the whole pipeline.",
        discussion: """
            Client CPU per push is user and system time of this process only. Figures are medians of the rounds.
            Build with -c release: swift run -c release SendBenchmark
            """,
        subcommands: [Measure.self, Sink.self], defaultSubcommand: Measure.self)
}

struct Measure: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the measurements (default).")

    @Option(help: "Devices of the pipeline's broadcast.") var pushes = 1_000_000
    @Option(help: "Pushes of a transport round.") var transportPushes = 200_000
    @Option(help: "Rounds of each measurement.") var rounds = 3
    @Option(help: "Lanes.") var lanes = 4
    @Option(help: "A server to send to, host:port (default: a simulator in accept-all mode, started by this command).")
    var endpoint: String?
    @Option(help: "CA file to trust for --endpoint.") var trust: String?
    @Option(help: "Milliseconds by which the started simulator delays its answers.") var answerDelay = 0
    @Flag(help: "Measure the transport alone.") var transportOnly = false
    @Flag(help: "Measure the pipeline alone.") var pipelineOnly = false

    func run() async throws {
        let target = try BenchmarkTarget.open(endpoint: endpoint, trust: trust, answerDelay: answerDelay)
        defer { target.close() }
        show("server \(target.endpoint), \(lanes) lanes, medians of \(rounds) rounds")
        show(BenchmarkResult.heading)
        if !pipelineOnly {
            let bench = TransportBench(target: target, lanes: lanes, pushes: transportPushes)
            var results: [BenchmarkResult] = []
            for _ in 0..<rounds { results.append(try await bench.run()) }
            show(BenchmarkResult.median(results).row("curl transport", pushes: transportPushes))
        }
        if !transportOnly {
            let bench = try await PipelineBench(target: target, lanes: lanes, devices: pushes)
            defer { bench.close() }
            var results: [BenchmarkResult] = []
            for round in 1...rounds { results.append(try await bench.run(round: round)) }
            show(BenchmarkResult.median(results).row("curl pipeline", pushes: pushes))
            show(bench.preparation)
        }
    }

    /// At once, also into a file or a pipe.
    private func show(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
