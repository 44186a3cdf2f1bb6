import APNs
import ArgumentParser
import Foundation

/// One measurement, printed as JSON.
struct Round: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure once.", shouldDisplay: false, subcommands: [OfTransport.self, OfPipeline.self])

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

        func run() async throws {
            let bench = try PipelineBench(
                store: store, transport: try options.transport.make(trust: options.trust),
                endpoint: try options.target(), lanes: options.lanes, devices: options.pushes)
            try await bench.run().show()
        }
    }
}

extension BenchmarkResult {
    func show() throws {
        Output.show(String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
    }
}
