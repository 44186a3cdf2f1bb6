import ArgumentParser
import Foundation
import Model
import Store

struct DevicesExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write devices as CSV, in the columns `devices import` reads.",
        discussion: "The file holds whole tokens: it is created readable by its owner only.")

    @OptionGroup var settings: Settings
    @Option(help: "Only devices this audience expression selects.") var matching: String?
    @Option(help: "Only devices of this topic.") var topic: String?
    @Option(name: .shortAndLong, help: "Write to this file instead of standard output.") var output: String?

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        let expression = try matching.map { try ExpressionArgument.parse($0, named: "--matching") } ?? .everyone
        let file = try OutputFile(output)
        try file.write(CSVLine.text(DeviceCSV.columns) + "\n")
        nonisolated(unsafe) let sink = file
        let count = try await store.exportDevices(topic: topic, matching: expression, now: Timestamp(Date())) {
            devices in
            try sink.write(devices.map { CSVLine.text(DeviceCSV.values(of: $0.record)) + "\n" }.joined())
        }
        try file.finish()
        try await store.recordEvent(
            kind: .devicesExported, run: nil, actor: ThisProcess.actor,
            detail: "\(count) devices" + (output.map { " to \($0)" } ?? ""), now: Timestamp(Date()))
        Console.note("\(count.grouped) devices")
    }
}
