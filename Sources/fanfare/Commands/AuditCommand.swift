import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Store
import Campaigns

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Tell who created, overrode, paused, cancelled or changed what, and when.")

    @OptionGroup var settings: Settings
    @Argument(help: "A run's number, or a campaign's name for its latest run (default: everything).") var run: String?
    @Option(help: "Only since this moment: a date, a time or an age (7d).") var since: String?
    @Option(help: "At most so many, the latest.") var limit = 200
    @Flag(help: "Print as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit: at least 1") }
    }

    func run() async throws {
        let session = try settings.session()
        let since = try since.map { text in
            guard let moment = ISOTime.parse(text) ?? WrittenDuration.parse(text).map({ session.now - $0 }) else {
                throw ValidationError("--since \(text): write a date (2026-01-31), a time or an age (7d)")
            }
            return moment
        }
        var found: Run?
        if let run { found = try await RunLookup.run(run, in: session.store) }
        let events = try await ReadAudit(store: session.store).events(of: found, since: since, limit: limit)
        if json { return Console.print(try JSONOutput.text(events.map(EventResult.init))) }
        Console.print(
            events.isEmpty ? "nothing on record" : events.flatMap(AuditPage.lines).joined(separator: "\n"))
        if events.count == limit { Console.note("the latest \(limit.grouped); more with --limit") }
    }
}
