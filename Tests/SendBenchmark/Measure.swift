import APNs
import ArgumentParser
import Foundation

struct Measure: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the measurements and print the table (default).")

    @Option(help: "Devices of the pipeline's broadcast.") var pushes = 1_000_000
    @Option(help: "Pushes of h2load and of a transport alone, per round.") var transportPushes = 200_000
    @Option(help: "Rounds of each measurement.") var rounds = 3
    @Option(parsing: .upToNextOption, help: "Lanes, one measurement for each number.") var lanes = [1, 2, 4]
    @Option(parsing: .upToNextOption, help: "Milliseconds by which the started server delays its answers.")
    var answerDelays = [0, 20]
    @Option(parsing: .upToNextOption, help: "What to measure: \(TransportKind.list).")
    var transports = TransportKind.allCases
    @Option(help: "A server to send to, host:port (default: a simulator in accept-all mode, started by this command).")
    var endpoint: String?
    @Option(help: "CA file to trust for --endpoint.") var trust: String?
    @Flag(help: "Measure h2load and the transports alone.") var transportOnly = false
    @Flag(help: "Measure the pipeline alone.") var pipelineOnly = false
    @Flag(help: "Measure the pipeline without its journal, too.") var journalCost = false

    private struct Case {
        var name: String
        var pushes: Int
        var measure: () async throws -> BenchmarkResult
    }

    func run() async throws {
        let folder = try BenchmarkFolder()
        defer { folder.remove() }
        Output.show("\(Machine.description); medians of \(rounds) rounds")
        if !transportOnly { Output.show(try prepareStore(in: folder)) }
        let delays: [Int?] = endpoint == nil ? answerDelays.map(\.self) : [nil]
        for delay in delays {
            let target = try BenchmarkTarget.open(
                endpoint: endpoint, trust: trust, answerDelay: delay ?? 0, directory: folder.path)
            defer { target.close() }
            let server = endpoint.map { "server \($0)" } ?? "answers delayed by \(delay ?? 0) ms"
            for count in lanes {
                Output.show("\n\(server), \(count) \(count == 1 ? "lane" : "lanes")\n\(BenchmarkResult.heading)")
                try await measure(target, folder, lanes: count)
            }
        }
    }

    private func measure(_ target: BenchmarkTarget, _ folder: BenchmarkFolder, lanes: Int) async throws {
        var baseline: Double?
        let cases = cases(target, folder, lanes: lanes)
        // In turns and back again, so that neither an hour of the machine nor the first place is one case's alone.
        var results = cases.map { _ in [BenchmarkResult]() }
        for round in 0..<rounds {
            let order = round.isMultiple(of: 2) ? Array(cases.indices) : cases.indices.reversed()
            for index in order { results[index].append(try await cases[index].measure()) }
        }
        for (item, results) in zip(cases, results) {
            let median = BenchmarkResult.median(results)
            if item.name == H2Load.name { baseline = median.cpuMicrosecondsPerPush }
            Output.show(median.row(item.name, baseline: baseline))
        }
    }

    private func cases(_ target: BenchmarkTarget, _ folder: BenchmarkFolder, lanes: Int) -> [Case] {
        var cases: [Case] = []
        if !pipelineOnly, let h2load = H2Load(target: target, clients: lanes, folder: folder.path) {
            cases.append(Case(name: H2Load.name, pushes: transportPushes) { try h2load.run(pushes: transportPushes) })
        }
        for kind in transports where !pipelineOnly && kind != .instant {
            cases.append(
                Case(name: "\(kind.rawValue) alone", pushes: transportPushes) {
                    try Child.result(of: ["round", "transport"] + arguments(kind, target, lanes, transportPushes))
                })
        }
        for kind in transports where !transportOnly {
            cases.append(
                Case(name: "pipeline, \(kind.rawValue)", pushes: pushes) {
                    try Child.result(
                        of: ["round", "pipeline", "--store", folder.store] + arguments(kind, target, lanes, pushes))
                })
            guard journalCost else { continue }
            cases.append(
                Case(name: "without journal", pushes: pushes) {
                    try Child.result(
                        of: ["round", "pipeline", "--store", folder.store, "--without-journal"]
                            + arguments(kind, target, lanes, pushes))
                })
        }
        return cases
    }

    private func arguments(_ kind: TransportKind, _ target: BenchmarkTarget, _ lanes: Int, _ pushes: Int) -> [String] {
        ["--transport", kind.rawValue, "--lanes", "\(lanes)", "--pushes", "\(pushes)"]
            + ["--endpoint", target.endpoint.description] + (target.trust.map { ["--trust", $0] } ?? [])
    }

    private func prepareStore(in folder: BenchmarkFolder) throws -> String {
        try Child.output(of: ["preparation", "--store", folder.store, "--devices", "\(pushes)"])
            .trimmingCharacters(in: .newlines)
    }
}
