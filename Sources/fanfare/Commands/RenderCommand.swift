import ArgumentParser
import Engine
import Foundation
import Model

struct RenderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "render", abstract: "Print a campaign's payload in one language, as it would be sent.")

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments

    @Option(help: "The device's language, a BCP 47 tag such as de-AT (default: the template's default_locale).")
    var locale: String?

    @Flag(help: "Indent the JSON.") var pretty = false

    func run() async throws {
        let configuration = try settings.configuration()
        let (definition, unset) = try arguments.definition(configuration, plannedAt: Timestamp(Date())).filledForShow()
        if let locale, LocaleTag(locale) == nil {
            throw Failure(.invalidData, "\"\(locale)\" is no BCP 47 language tag; write for instance de or pt-BR")
        }
        let renderer = try PayloadRenderer(definition)
        let index = renderer.choice(forLocale: locale).prototype
        let payload = renderer.sample(index)
        let limit = definition.campaign.pushType.payloadMaxBytes
        Console.note("locale \(renderer.localeName(index)): \(payload.utf8.count) of \(limit) bytes")
        if !unset.isEmpty { Console.note("not set yet: \(unset.joined(separator: ", "))") }
        Console.print(pretty ? try Self.indented(payload) : payload)
    }

    private static func indented(_ payload: String) throws -> String {
        let value = try JSONSerialization.jsonObject(with: Data(payload.utf8))
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }
}
