import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Store

struct SegmentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segments", abstract: "Import, define and look at named sets of devices.",
        subcommands: [
            SegmentsImportCommand.self, SegmentsDefineCommand.self, SegmentsListCommand.self, SegmentsShowCommand.self,
        ])
}

/// The stable shape of a segment in `segments list|show|define --json`.
struct SegmentJSON: Encodable {
    var name: String
    /// `static`: imported; `dynamic`: whoever the expression selects.
    var kind: String
    var expression: String?
    var count: Int
    var updatedAt: String

    init(_ summary: SegmentSummary) {
        name = summary.name
        switch summary.kind {
        case .static: kind = "static"
        case .dynamic(let source):
            kind = "dynamic"
            expression = source
        }
        count = summary.count
        updatedAt = summary.updatedAt.iso8601
    }
}

struct SegmentsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List segments with their sizes.")

    @OptionGroup var settings: Settings
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let entries = try await store.segments(now: Timestamp(Date())).map(SegmentJSON.init)
        if json { return Console.print(try JSONOutput.text(entries)) }
        if entries.isEmpty {
            return Console.print(
                "no segments; add one with `fanfare segments import NAME FILE` or `fanfare segments define NAME EXPRESSION`"
            )
        }
        for entry in entries {
            Console.print(
                "\(entry.name.padded(to: 32)) \(entry.count.grouped.rightAligned(to: 12))  \(entry.updatedAt)"
                    + (entry.expression.map { "  \($0)" } ?? ""))
        }
    }
}

struct SegmentsDefineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "define", abstract: "Name an audience expression.",
        discussion: """
            Such a segment is dynamic: it is whoever the expression selects when a run starts. It may name other segments.

              fanfare segments define lapsed 'last_seen within 90 days and not last_seen within 30 days'
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Argument(help: "An audience expression, in quotes.") var expression: String
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let parsed = try ExpressionArgument.parse(expression, named: "expression")
        let store = try settings.store(try settings.configuration())
        let now = Timestamp(Date())
        try await store.defineSegment(name, source: expression, expression: parsed, now: now)
        let summary = try await store.segment(name, now: now, sampleMax: 0).summary
        Console.print(
            json
                ? try JSONOutput.text(SegmentJSON(summary))
                : "segment \(name): \(summary.count.devices) now")
    }
}

struct SegmentsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a segment: its size now, where it comes from, and some of its devices.")

    @OptionGroup var settings: Settings
    @Argument(help: "The segment's name.") var name: String
    @Option(help: "How many devices to show.") var sample = 5
    @Flag(help: "Print the result as JSON.") var json = false

    struct Result: Encodable {
        var segment: SegmentJSON
        var sample: [DeviceJSON]
    }

    func validate() throws {
        guard (0...1000).contains(sample) else { throw ValidationError("--sample: 0 to 1000") }
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let detail = try await store.segment(name, now: Timestamp(Date()), sampleMax: sample)
        if json {
            let result = Result(segment: SegmentJSON(detail.summary), sample: detail.sample.map(DeviceJSON.init))
            return Console.print(try JSONOutput.text(result))
        }
        var page = Page()
        page.row("Segment", detail.summary.name)
        switch detail.summary.kind {
        case .static:
            page.row("Members", "\(detail.summary.count.devices), imported \(detail.summary.updatedAt.iso8601)")
        case .dynamic(let source):
            page.row("Members", "\(detail.summary.count.devices) now")
            page.row("Expression", "\(source)", "defined \(detail.summary.updatedAt.iso8601)")
        }
        page.row("Sample", detail.sample.map(DeviceText.line))
        Console.print(page.text)
    }
}

/// An audience expression given on the command line.
enum ExpressionArgument {
    static func parse(_ text: String, named name: String) throws -> AudienceExpression {
        let (expression, problems) = AudienceParser.parse(text)
        guard let expression, problems.isEmpty else {
            throw Failure(
                .invalidData,
                problems.map {
                    Diagnostic(path: name, line: 1, column: $0.offset + 1, what: $0.what, advice: $0.advice)
                })
        }
        return expression
    }
}
