import ArgumentParser
import Model
import SQLiteStore
import Store
import Campaigns

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
        let opened = try Session.reading(path)
        let verification = try await MaintainStore(store: opened).verify(configuration, faultsMax: limit)
        try opened.close()
        Console.print(
            json
                ? try JSONOutput.text(VerificationResult(store: path, verification))
                : VerificationPage(path: path, verification: verification).text)
        if !verification.isSound { throw ExitStatus.invalidData.exitCode }
    }
}
