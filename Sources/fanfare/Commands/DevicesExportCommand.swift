import ArgumentParser
import Foundation
import Model
import Store
import Campaigns

struct DevicesExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write devices as CSV, in the columns `devices import` reads.",
        discussion: "The file holds whole tokens: it is created readable by its owner only.")

    @OptionGroup var settings: Settings
    @Option(help: "Only devices this audience expression selects.") var matching: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func run() async throws {
        let session = try settings.session()
        let file = try OutputFile(output)
        nonisolated(unsafe) let sink = file
        let count = try await ManageDevices(store: session.store).export(
            matching: matching, topic: topic, to: output, by: session.actor, now: session.now
        ) { try sink.write($0) }
        try file.finish()
        Console.note("\(count.grouped) devices")
    }
}
