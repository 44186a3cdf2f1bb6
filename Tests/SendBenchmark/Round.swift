import APNs
import ArgumentParser
import Foundation
import Logging
import LonePipeline
import SQLiteStore
import Sending

/// One measurement, printed as JSON.
struct Round: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure once.", shouldDisplay: false, subcommands: [OfTransport.self, OfPipeline.self, OfRun.self])

    struct Options: ParsableArguments {
        @Option var transport: TransportKind
        @Option var lanes: Int
        @Option var pushes: Int
        @Option var endpoint: String
        @Option var trust: String?

        func target() throws -> PushEndpoint {
            guard let parsed = PushEndpoint(parsing: endpoint) else {
                throw BenchmarkTarget.Problem.badEndpoint(endpoint)
            }
            return parsed
        }
    }

    struct OfTransport: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "transport")
        @OptionGroup var options: Options

        func run() async throws {
            let bench = TransportBench(
                transport: try options.transport.make(trust: options.trust), endpoint: try options.target(),
                lanes: options.lanes, pushes: options.pushes)
            try await bench.run().show()
        }
    }

    struct OfPipeline: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "pipeline")
        @OptionGroup var options: Options
        @Option var store: String
        @Flag var withoutJournal = false

        func run() async throws {
            let bench = try PipelineBench(
                store: store, transport: try options.transport.make(trust: options.trust),
                endpoint: try options.target(), lanes: options.lanes, devices: options.pushes, journal: !withoutJournal)
            try await bench.run().show()
        }
    }
}

extension Round {
    /// One run to its end, in a process that may be killed; fails when it is not finished then.
    struct OfRun: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "run")
        @Argument var run: Int64
        @OptionGroup var options: Options
        @Option var store: String

        func run() async throws {
            let sender = try BenchmarkSender(path: store, journal: true)
            guard let found = try await sender.store.run(run) else { throw ExitCode.failure }
            var logger = Logger(label: "soak")
            logger.logLevel = .critical
            let pipeline = sender.pipeline(
                try options.transport.make(trust: options.trust), try options.target(), lanes: options.lanes, logger,
                jitter: { Double.random(in: 0...1) })
            let end = try await pipeline.execute(found, as: sender.actor) { _, _ in }
            guard end == .finished else {
                Output.show("run \(run): \(end)")
                throw ExitCode(EX_TEMPFAIL)
            }
        }
    }
}

extension BenchmarkResult {
    func show() throws {
        Output.show(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    }
}
