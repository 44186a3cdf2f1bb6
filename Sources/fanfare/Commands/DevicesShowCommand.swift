import ArgumentParser
import Foundation
import Model
import Store
import Campaigns

struct DevicesShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show devices, or without an argument how many there are.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a token or its last 8 characters.") var text: String?
    @Flag(help: "List the suspended devices, each with its reason.") var suspended = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        if suspended, text != nil { throw ValidationError("give a device or --suspended, not both") }
    }

    func run() async throws {
        let devices = ManageDevices(store: try settings.session().store)
        if suspended { return try await SuspendedDevices(json: json).show(devices) }
        guard let text else { return try show(try await devices.counts()) }
        let found = try await devices.find(text)
        Console.print(
            json
                ? try JSONOutput.text(found.map(DeviceResult.init))
                : found.map(DeviceText.text).joined(separator: "\n\n"))
    }

    private func show(_ counts: [DeviceCountResult]) throws {
        if json { return Console.print(try JSONOutput.text(counts)) }
        if counts.isEmpty { return Console.print("no devices; add some with `fanfare devices import FILE`") }
        for count in counts {
            Console.print(
                "\(count.topic)  \(count.environment.padded(to: 10))  \(count.status.padded(to: 9))  "
                    + count.count.grouped.rightAligned(to: 12))
        }
    }
}
