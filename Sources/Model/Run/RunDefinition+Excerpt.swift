import Foundation

extension TemplateText {
    /// Returns the text with the values of a run. A field of the device becomes an ellipsis.
    package func shown(with variables: [String: String]) -> String {
        parts.map { part in
            switch part {
            case .literal(let text): text
            case .variable(let name): variables[name] ?? "…"
            case .device: "…"
            }
        }.joined()
    }
}

extension RunDefinition {
    /// The first words that phones show of the run: its title and its text, at most ``excerptMax`` letters. `nil` if
    /// phones show nothing, or texts of the app itself. A recall shows nothing either.
    ///
    /// - Parameter languages: the reader's languages, the best first. Otherwise the default language counts.
    package func excerpt(in languages: [LocaleTag]) -> String? {
        let template = template(ofVariant: campaign.variants.isEmpty ? nil : 0)
        guard correction?.kind != .recall, case .localized(let blocks) = template.alert else { return nil }
        let choices = languages.lazy.compactMap { template.localeChoice(for: $0) }.filter { $0.fit != .fallback }
        guard let index = (choices.first ?? template.localeChoice(for: nil))?.index else { return nil }
        let texts = [blocks[index].title, blocks[index].subtitle, blocks[index].body].compactMap(\.self)
        let shown = texts.map { $0.shown(with: variables) }.filter(\.hasVisibleSign).joined(separator: ": ")
        return shown.isEmpty ? nil : String(shown.prefix(Self.excerptMax))
    }

    private static var excerptMax: Int { 120 }

    /// The texts that phones may show, in all languages and variants.
    private var shownTexts: [String] {
        let templates =
            campaign.variants.isEmpty ? [template] : campaign.variants.indices.map { template(ofVariant: $0) }
        return templates.flatMap { template -> [TemplateText] in
            guard case .localized(let blocks) = template.alert else { return [] }
            return blocks.flatMap(\.texts)
        }.map { $0.shown(with: variables) }
    }

    /// The text that a search for words reads, without the names of the run.
    package var searchedText: String {
        (shownTexts + variables.sorted { $0.key < $1.key }.map(\.value)).joined(separator: "\n")
    }
}
