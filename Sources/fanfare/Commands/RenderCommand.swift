import ArgumentParser
import Foundation
import Model
import Store
import Sending
import Campaigns

struct RenderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "render", abstract: "Print a campaign's payload for a language or a device, as it would be sent.",
        discussion: """
            The payload goes to standard output, its size and the headers that would go with it to standard error. With \
            --device everything is that device's: language, variant, fields and badge.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments

    @Option(help: "The device's language, a BCP 47 tag such as de-AT (default: the template's default_locale).")
    var locale: String?

    @Option(help: "An installation id, a user id, a token or its last 8 characters.") var device: String?
    @Option(help: "The variant to print (default: the device's, or the first).") var variant: String?
    @Flag(help: "Indent the JSON.") var pretty = false
    @Flag(help: "Print payload, size and headers as JSON.") var json = false

    func validate() throws {
        guard locale == nil || device == nil else { throw ValidationError("give --locale or --device, not both") }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let (definition, unset) = try arguments.definition(configuration, plannedAt: Timestamp(Date())).filledForShow()
        let rendering =
            if let device {
                try await RenderPayload.rendering(
                    definition, device: device, variant: variant, in: try Session(configuration).store)
            } else {
                try RenderPayload.rendering(definition, locale: locale, variant: variant)
            }
        if !unset.isEmpty { Console.note("not set yet: \(unset.joined(separator: ", "))") }
        if json { return Console.print(try JSONOutput.text(rendering.result)) }
        for line in rendering.notes { Console.note(line) }
        Console.print(pretty ? try Self.indented(rendering.payload) : rendering.payload)
    }

    private static func indented(_ payload: String) throws -> String {
        let value = try JSONSerialization.jsonObject(with: Data(payload.utf8))
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }
}
