import ArgumentParser
import Foundation
import Model
import Store

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
        let store = try settings.store(try settings.configuration())
        try await Abandoned.recover(in: store)
        let found = try await RunLookup.run(run, in: store)
        if check { return try await prove(found, store) }
        let file = try OutputFile(output)
        switch format {
        case .text: try file.write(ReportText(report: try await store.report(found.id)).text + "\n")
        case .json: try file.write(try JSONOutput.text(ReportJSON(try await store.report(found.id))) + "\n")
        case .csv: try await OutcomeCSV.write(found, store, to: file)
        }
        try file.finish()
    }

    private func prove(_ run: Run, _ store: any AllRoles) async throws {
        let check = try await store.check(run.id)
        let proof = SumProof(run: run, check: check)
        Console.print(format == .json ? try JSONOutput.text(proof.json) : proof.text)
        if !proof.closes { throw ExitStatus.invalidData.exitCode }
    }
}
