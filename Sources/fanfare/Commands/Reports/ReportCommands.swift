import ArgumentParser
import Campaigns
import Foundation
import Model
import Store
import Web

struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Print the report of a run: as text, as a CSV table, or as one HTML page with charts.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, json, csv, html
    }

    @OptionGroup var settings: Settings

    @Argument(help: RunLookup.help, completion: .custom(CampaignNames.completions)) var run: String

    @Option(help: "text, json, csv, or html: a page with charts that needs no other file and can be printed.")
    var format = Format.text
    @Option(
        help: """
            With csv: summary, reasons, environments, locales, variants, timeline, app_versions, zones, countries, waves, \
            stages, feedback, opens, or deliveries, a line per device (default: deliveries).
            """,
        completion: .list(ReportTable.allCases.map(\.rawValue)),
        transform: { name in
            do { return try ReportTable(named: name) } catch { throw ValidationError("\(error)") }
        })
    var table: ReportTable?
    @Flag(help: "Count every delivery again and check that the counts balance.") var check = false
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func validate() throws {
        guard table == nil || format == .csv else { throw ValidationError("--table needs --format csv") }
    }

    func run() async throws {
        let session = try await settings.session(.reading)
        let found = try await session.run(run)
        let reports = session.useCases.reports
        if check { return try show(found, try await reports.check(found)) }
        let file = try OutputFile(output)
        switch format {
        case .text:
            let report = try await reports.report(found)
            let feedback = try await reports.feedback(of: found, in: ReportResult(report), now: session.now)
            try file.write(ReportText(report: report, feedback: feedback).text + "\n")
        case .json: try file.write(try ResultJSON.text(try await reports.result(of: found, now: session.now)) + "\n")
        case .csv: try await write(table ?? .deliveries, of: found, reports, now: session.now, to: file)
        case .html:
            let page = ReportPage(
                try await reports.result(of: found, now: session.now), try await reports.timeline(of: found),
                waves: try await reports.waves(of: found).map(WaveBar.init), definition: found.definition,
                people: try await RunPeople(found, session.useCases),
                prunedAt: try await reports.prunedAt(found), madeAt: session.now,
                version: Fanfare.configuration.version)
            try file.write(try page.html())
        }
        try file.finish()
    }

    private func write(
        _ table: ReportTable, of run: Run, _ reports: ReportRun, now: Timestamp, to file: OutputFile
    ) async throws {
        guard table == .deliveries else {
            // What people did is the expensive part of a report, and no other table needs it.
            let report =
                [.feedback, .opens].contains(table)
                ? try await reports.result(of: run, now: now) : ReportResult(try await reports.report(run))
            return try file.writeRows(table.csv(report, try await reports.timeline(of: run)))
        }
        nonisolated(unsafe) let sink = file
        try await reports.outcomes(of: run) { try sink.writeRows($0) }
    }

    private func show(_ run: Run, _ check: SumCheck) throws {
        Console.print(
            format == .json
                ? try ResultJSON.text(SumCheckResult(run, check)) : SumProof(run: run, check: check).text)
        if !check.closes { throw ExitStatus.invalidData.exitCode }
    }
}

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Print the history of a device: every run, decision and token, in order.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a current or earlier token, or its last 8 characters.")
    var text: String
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session(.reading)
        let explained = try await session.useCases.explaining.explain(text, now: session.now)
        Console.print(
            json
                ? try ResultJSON.text(explained.map(\.result))
                : explained.map { ExplanationPage(history: $0.history, explanation: $0.explanation).text }
                    .joined(separator: "\n\n"))
    }
}

/// The history of one device, as text.
struct ExplanationPage {
    let history: DeviceHistory
    let explanation: Explanation

    var text: String {
        let cut = history.isCut ? ["(only the latest runs are shown)"] : []
        let lines = explanation.lines.map { line in
            "\(line.at.iso8601.padded(to: 25))\(line.run.map { "run \($0)" }?.padded(to: 9) ?? "         ")\(line.text)"
        }
        let nothing = lines.isEmpty ? ["the store has no history of this device"] : []
        let now = explanation.now.map { "\("now".padded(to: 25))         \($0)" }
        return (["\(DeviceText.line(history.device)), \(history.device.record.topic)"] + cut + lines + nothing + now)
            .joined(separator: "\n")
    }

}

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract:
            "Print the audit log: each creation, override, pause, cancellation and change, with its actor and time.")

    @OptionGroup var settings: Settings
    @Argument(help: "A run's number, or a campaign's name for its latest run (default: everything).") var run: String?
    @Option(help: "Only entries of this kind, such as run_paused; `fanfare guide` lists the kinds.") var kind: String?
    @Option(help: "Only entries since this moment: a date, a time or an age (7d).") var since: String?
    @Option(help: "The maximum number of entries, latest first.") var limit = 200
    @Flag(help: "Print as JSON.") var json = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1") }
        if let kind, EventKind(rawValue: kind) == nil {
            let kinds = EventKind.allCases.map(\.rawValue)
            let advice =
                Suggestion.nearest(to: kind, among: kinds).map { "did you mean \($0)?" }
                ?? "known are \(kinds.joined(separator: ", "))"
            throw ValidationError("--kind \(kind): no such kind; \(advice)")
        }
    }

    func run() async throws {
        let session = try await settings.session(.reading)
        let since = try since.map { text in
            guard let moment = MomentOption.parse(text, now: session.now) else {
                throw ValidationError("--since \(text): write a date (2026-01-31), a time or an age (7d)")
            }
            return moment
        }
        var found: Run?
        if let run { found = try await session.useCases.run(run) }
        let events = try await session.useCases.audit.events(
            of: found, kind: kind.flatMap(EventKind.init), since: since, limit: limit)
        if json { return Console.print(try ResultJSON.text(events.map(EventResult.init))) }
        Console.print(
            events.isEmpty ? "no entries" : events.flatMap(AuditPage.lines).joined(separator: "\n"))
        if events.count == limit { Console.note("the latest \(limit.grouped); give --limit to show more") }
    }
}

/// The audit log as text, with a few lines per event.
enum AuditPage {
    static func lines(_ event: StoreEvent) -> [String] {
        let run = event.run.map { "run \($0) \(event.campaign ?? "")" }
        let what = [event.kind, run, event.detail].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "  ")
        let indent = String(repeating: " ", count: 26)
        var lines = [
            "\(event.at.iso8601.padded(to: 26))\(what)",
            "\(indent)by \(event.actor.name), \(event.actor.origin.rawValue)",
        ]
        if let command = event.actor.command { lines.append("\(indent)$ \(command)") }
        for (path, hash) in event.files.sorted(by: { $0.key < $1.key }) { lines.append("\(indent)\(hash)  \(path)") }
        return lines
    }

}
