import ArgumentParser
import Model
import SQLiteStore
import Store

struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check everything the store promises, row by row, without changing it.",
        discussion: """
            May be used while a run is on. Looks for deliveries without an account, accepted ones on their way again,
            leases without an owner, background pushes beyond the silent budget, tokens held twice, damage of the file.
            Exit codes: 0 every promise holds; 65 one is broken, with the rows that break it.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "The store to check (default: the configured one).", completion: .file()) var store: String?
    @Option(help: "How many offending rows to list for each promise.") var limit = 20
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
    }

    func run() async throws {
        // A copy on another machine has no configuration beside it.
        let configuration = store == nil ? try settings.configuration() : settings.configurationIfAny()
        let path = store ?? configuration?.store ?? ""
        let budgets = (configuration?.apps ?? []).map { ($0.topic, $0.silentBudget) }
        let opened = try SQLiteFileStore(path: path, readOnly: true)
        let verification = try await opened.verify(
            budgets: Dictionary(budgets, uniquingKeysWith: { first, _ in first }), faultsMax: limit)
        try opened.close()
        let page = VerificationPage(path: path, verification: verification)
        Console.print(json ? try JSONOutput.text(page.json) : page.text)
        if !verification.isSound { throw ExitStatus.invalidData.exitCode }
    }
}
