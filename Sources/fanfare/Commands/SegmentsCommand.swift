import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Storage

struct SegmentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segments", abstract: "Import and list named sets of devices.",
        subcommands: [SegmentsImportCommand.self, SegmentsListCommand.self])
}

struct SegmentsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List segments with their sizes.")

    @OptionGroup var settings: Settings
    @Flag(help: "Print the result as JSON.") var json = false

    struct Entry: Encodable {
        var name: String
        var count: Int
        var updatedAt: String
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let entries = try await store.segments().map {
            Entry(name: $0.name, count: $0.count, updatedAt: $0.updatedAt.iso8601)
        }
        if json { return Console.print(try JSONOutput.text(entries)) }
        if entries.isEmpty { return Console.print("no segments; add one with `fanfare segments import NAME FILE`") }
        for entry in entries {
            Console.print(
                "\(entry.name.padded(to: 32)) \(entry.count.grouped.rightAligned(to: 12))  \(entry.updatedAt)")
        }
    }
}
