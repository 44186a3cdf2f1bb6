import Model
import Store

/// The languages of an app's devices in which a campaign has no text, so that those devices get the default text.
struct FallbackLanguages {
    /// The languages, those with most devices first.
    let names: [String]
    /// The languages of the default texts that those devices get.
    let shown: [String]

    /// - Parameter languages: the number of the app's devices in each language.
    init(_ campaign: Campaign, _ templates: [Template], _ languages: [String: Int]) {
        let localized = templates.filter { campaign.templatesNamed.contains($0.name) && !$0.locales.isEmpty }
        // An SQL query may select any device, so all languages count.
        let audience = campaign.audienceSQL == nil ? campaign.audience.expression : .everyone
        let selected = languages.keys.compactMap { LocaleTag($0) }.filter { audience.mayBe(true, for: $0) }
        let uncovered = selected.filter { tag in
            localized.contains { $0.localeChoice(for: tag)?.fit == .fallback }
        }
        names = uncovered.map(\.description)
            .sorted { (languages[$1] ?? 0, $0) < (languages[$0] ?? 0, $1) }
        shown = Set(
            localized.compactMap { template in
                template.localeChoice(for: nil).map { template.locales[$0.index].description }
            }
        ).sorted()
    }

    /// Returns the number of an app's devices in each language.
    static func languages(ofTopic topic: String, in store: any DeviceRegistry, now: Timestamp) async throws
        -> [String: Int]
    {
        let reach = try await store.reach(of: .everyone, topic: topic, pushType: .background, now: now)
        return reach.slices.reduce(into: [:]) { counts, slice in
            if let locale = slice.locale { counts[locale, default: 0] += slice.count }
        }
    }
}

extension AudienceExpression {
    /// Returns whether the expression may have this value for a device of which only the language is known.
    fileprivate func mayBe(_ value: Bool, for tag: LocaleTag) -> Bool {
        switch self {
        case .everyone: value
        case .all(let parts):
            value ? parts.allSatisfy { $0.mayBe(true, for: tag) } : parts.contains { $0.mayBe(false, for: tag) }
        case .any(let parts):
            value ? parts.contains { $0.mayBe(true, for: tag) } : parts.allSatisfy { $0.mayBe(false, for: tag) }
        case .not(let part): part.mayBe(!value, for: tag)
        case .oneOf(.locale, let ranges):
            ranges.contains { if case .locale(let range) = $0 { range.selects(tag) } else { false } } == value
        case .comparison(.locale, .equal, .locale(let other)): (other == tag) == value
        case .comparison(.locale, .notEqual, .locale(let other)): (other != tag) == value
        case .isNull(.locale): !value
        case .comparison, .between, .oneOf, .isNull, .within, .segment, .tag: true
        }
    }
}
