import ArgumentParser
import Foundation
import Model
import Store

struct DevicesShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show devices, or without an argument how many there are.")

    @OptionGroup var settings: Settings
    @Argument(help: "An installation id, a user id, a token or its last 8 characters.") var text: String?
    @Flag(help: "List the suspended devices, each with its reason.") var suspended = false
    @Flag(help: "Print the result as JSON.") var json = false

    struct Count: Encodable {
        var topic, environment, status: String
        var count: Int
    }

    func validate() throws {
        if suspended, text != nil { throw ValidationError("give a device or --suspended, not both") }
    }

    func run() async throws {
        let store = try settings.store(try settings.configuration())
        if suspended { return try await SuspendedDevices(json: json).show(store) }
        guard let text else { return try await showCounts(store) }
        let devices = try await DeviceLookup.devices(text, in: store)
        Console.print(
            json
                ? try JSONOutput.text(devices.map(DeviceJSON.init))
                : devices.map(DeviceText.text).joined(separator: "\n\n"))
    }

    private func showCounts(_ store: any AllRoles) async throws {
        let counts = try await store.deviceCounts().map {
            Count(
                topic: $0.topic, environment: $0.environment.rawValue, status: $0.status.rawValue, count: $0.count)
        }
        if json { return Console.print(try JSONOutput.text(counts)) }
        if counts.isEmpty { return Console.print("no devices; add some with `fanfare devices import FILE`") }
        for count in counts {
            Console.print(
                "\(count.topic)  \(count.environment.padded(to: 10))  \(count.status.padded(to: 9))  "
                    + count.count.grouped.rightAligned(to: 12))
        }
    }
}
