import ArgumentParser
import Foundation
import Model
import Store
import Campaigns

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Print what became of a run; --format csv gives a line per token.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, json, csv
    }

    @OptionGroup var settings: Settings

    @Argument(help: RunLookup.help) var run: String

    @Option(help: "text, json or csv.") var format = Format.text
    @Flag(help: "Count every delivery again and prove that the sums close.") var check = false
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func run() async throws {
        let session = try settings.session()
        let found = try await session.run(run)
        let reports = ReportRun(store: session.store)
        if check { return try show(found, try await reports.check(found)) }
        let file = try OutputFile(output)
        switch format {
        case .text: try file.write(ReportText(report: try await reports.report(found)).text + "\n")
        case .json: try file.write(try JSONOutput.text(ReportResult(try await reports.report(found))) + "\n")
        case .csv:
            nonisolated(unsafe) let sink = file
            try await reports.outcomes(of: found) { try sink.write($0) }
        }
        try file.finish()
    }

    private func show(_ run: Run, _ check: SumCheck) throws {
        Console.print(
            format == .json
                ? try JSONOutput.text(SumCheckResult(run, check)) : SumProof(run: run, check: check).text)
        if !check.closes { throw ExitStatus.invalidData.exitCode }
    }
}
