import ArgumentParser
import Campaigns
import Foundation
import Model
import OutputFiles
import Store

extension ExportTable: ExpressibleByArgument {}
extension ExportFormat: ExpressibleByArgument {}

struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write tables for analysts, a file for each day and run.",
        discussion: """
            The folders are named as DuckDB, Spark and pandas read them: DIR/deliveries/day=2026-11-27/run-7.parquet. An \
            existing file is replaced, so repeat the command with --since to keep a copy up to date. \
            --since is rounded down to midnight UTC. \
            `fanfare guide reference-export` lists the columns; they are never renamed.

              fanfare export deliveries --since 7d -o warehouse
              duckdb -c "SELECT state, count(*) FROM 'warehouse/deliveries/*/*.parquet' GROUP BY 1"
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "runs, deliveries, events, devices or timeline.") var table: ExportTable
    @Option(name: .shortAndLong, help: "The folder to write to.", completion: .directory) var output: String
    @Option(help: "parquet, csv or jsonl.") var format = ExportFormat.parquet
    @Option(
        help: """
            Export only reports received since this date or time, or within an age such as 7d, and runs that were \
            created or finished since then or have not finished.
            """)
    var since: String?
    @Option(help: "Export only the run with this number.") var run: Int64?
    @Flag(help: "Also write the whole tokens of devices; the audit log records the export.") var withTokens = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard !withTokens || table == .devices else {
            throw ValidationError("--with-tokens is only for the table devices; remove it")
        }
        guard run == nil || [.deliveries, .timeline].contains(table) else {
            throw ValidationError("--run is for deliveries and timeline, which have a file for each run; use --since")
        }
        guard !output.isEmpty else { throw ValidationError("-o is empty; name a folder") }
        guard table != .devices || since == nil && run == nil else {
            throw ValidationError("the table devices has devices as they are now; remove --since and --run")
        }
    }

    func run() async throws {
        let session = try await settings.session()
        let moment = try since.map { try Self.moment($0, session.now) }
        let question = ExportData.Question(
            table, format: format, since: moment, run: self.run, withTokens: withTokens)
        let folder = output
        let exporting = session.useCases.exporting(version: Fanfare.configuration.version)
        let written = try await Interruptible.run("run the same command again; finished files stay") {
            try await exporting.write(question, by: session.actor, now: session.now) { name in
                try ExportedFile(folder: folder, name: name, isSecret: withTokens)
            }
        }
        let result = ExportResult(
            table: table.rawValue, files: written.files, rows: written.rows,
            unreadable: written.unreadable.isEmpty ? nil : written.unreadable.map(UnreadableRunResult.init))
        Console.print(
            json
                ? try ResultJSON.text(result)
                : "\(written.rows.counted("row")) in \(written.files.counted("file")) under \(folder)")
        for run in written.unreadable { Console.error("error: the export lacks a run: \(run.campaign): \(run.error)") }
        if !written.unreadable.isEmpty { throw ExitStatus.invalidData.exitCode }
    }

    private static func moment(_ text: String, _ now: Timestamp) throws -> Timestamp {
        guard let moment = MomentOption.parse(text, now: now) else {
            throw ValidationError("--since \(text): write a date such as 2026-01-31, or an age such as 7d")
        }
        return moment
    }
}

/// The stable shape of `export --json`.
struct ExportResult: Codable, Hashable {
    var table: String
    var files: Int
    var rows: Int
    /// The runs that the export lacks, because they cannot be read. Absent if there are none.
    var unreadable: [UnreadableRunResult]?
}

/// A file below the folder of an export. It appears under its name when it is complete.
private final class ExportedFile: ExportData.Target {
    private let path: String
    private let writer: OutputWriter

    init(folder: String, name: String, isSecret: Bool) throws {
        path = "\(folder)/\(name)"
        try Self.requireNoLink(folder, name)
        let parent = (path as NSString).deletingLastPathComponent
        do {
            try FileManager.default.createDirectory(
                atPath: parent, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Failure(.cannotMake, "cannot create the folder \(parent): \(error.localizedDescription)")
        }
        do {
            writer = try OutputPath(path).open(mode: 0o600, isSecret ? .closedToOthers : .asFound)
        } catch {
            throw Failure(.cannotMake, "cannot write \(path): \(error); check the folder and its permissions")
        }
    }

    /// Throws if anything below the export's folder is a link: the data would go to another place.
    private static func requireNoLink(_ folder: String, _ name: String) throws {
        var place = folder
        for part in name.split(separator: "/") {
            place += "/\(part)"
            guard (try? FileManager.default.destinationOfSymbolicLink(atPath: place)) != nil else { continue }
            throw Failure(
                .cannotMake,
                "\(place) is a symbolic link, and an export does not write through links; remove the link, or name "
                    + "another folder with -o")
        }
    }

    func write(_ bytes: [UInt8]) throws {
        do {
            try writer.write(bytes)
        } catch {
            throw Self.failure(path, error)
        }
    }

    func finish() throws {
        do {
            try writer.finish()
        } catch {
            throw Self.failure(path, error)
        }
    }

    private static func failure(_ path: String, _ fault: OutputFault) -> Failure {
        Failure(fault.isOfDisk ? .inputOutput : .cannotMake, "cannot write \(path): \(fault); free disk space")
    }
}
