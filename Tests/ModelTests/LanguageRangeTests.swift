import Model
import Testing

struct LanguageRangeTests {
    /// A range, a device, and whether the one selects the other.
    @Test(
        arguments: [
            ("de", "de", true), ("de", "de-AT", true), ("de-AT", "de", false), ("de-AT", "de-CH", false),
            ("de", "den", false), ("zh", "zh-TW", true), ("zh", "zh-Hans-CN", true),
            // CLDR: outside China, Singapore and Malaysia Chinese without a script is written in the traditional one.
            ("zh-Hant", "zh-TW", true), ("zh-Hant", "zh-HK", true), ("zh-Hant", "zh-MO", true),
            ("zh-Hant", "zh-US", true), ("zh-Hant", "zh-Hant-HK", true), ("zh-Hant", "zh-Hant-TW-u-ca-roc", true),
            ("zh-Hant", "zh", false), ("zh-Hant", "zh-CN", false), ("zh-Hant", "zh-Hans-TW", false),
            ("zh-Hans", "zh", true), ("zh-Hans", "zh-SG", true), ("zh-Hans", "zh-MY", true),
            ("zh-Hans", "zh-TW", false),
            ("zh-HK", "zh-Hant-HK", true), ("zh-HK", "zh-MO", true), ("zh-HK", "zh-TW", false),
            ("zh-TW", "zh-HK", false),
            ("sr-Latn", "sr-ME", true), ("sr-Cyrl", "sr-RS", true), ("sr-Cyrl", "sr-ME", false),
            ("sr-Latn", "sh", true),
            ("sr", "sh-RS", true), ("sr-Cyrl", "sh", false),
            ("no", "nb-NO", true), ("no", "nn", true), ("nb", "no", true), ("nb", "nn", false),
            ("he", "iw-IL", true), ("iw", "he", true), ("id", "in-ID", true), ("in", "id", true),
            ("fil", "tl-PH", true),
            ("es-419", "es-MX", true), ("es-419", "es-ES", false), ("es-419", "es", false), ("es-MX", "es-419", false),
            ("pt-PT", "pt-AO", true), ("pt-PT", "pt-MZ", true), ("pt-PT", "pt-CH", true), ("pt-PT", "pt", false),
            ("pt-PT", "pt-BR", false), ("pt-BR", "pt", false), ("en-001", "en-DE", true), ("en-150", "en-DE", true),
            ("en-GB", "en-AU", false), ("zh-Hant", "yue-HK", true), ("zh-Hans", "yue-CN", true),
            ("yue", "zh-HK", false),
            ("de-1996", "de-1996-u-co-phonebk", true), ("de-1996", "de-AT-1996", false),
        ])
    func `a range selects the devices that understand it`(range: String, device: String, isSelected: Bool) throws {
        let range = try #require(LocaleTag(range))
        #expect(range.selects(try #require(LocaleTag(device))) == isSelected)
    }

    private static let many = [
        "de", "de-AT", "de-Latn", "en", "en-GB", "en-AU", "en-001", "es", "es-419", "es-MX", "pt", "pt-BR", "pt-PT",
        "pt-AO", "zh", "zh-Hans", "zh-Hant", "zh-TW", "zh-HK", "zh-MO", "zh-Hant-MO", "zh-Latn", "yue", "yue-CN", "sr",
        "sr-ME", "sr-Latn", "sr-Cyrl-ME", "sh", "no", "nb", "nn-NO", "he", "iw", "in", "id-ID", "tl", "fil", "xx",
        "xx-XX",
    ]

    @Test func `a device gets a text that it understands exactly when an audience of that language would select it`()
        throws
    {
        let tags = try Self.many.map { try #require(LocaleTag($0)) }
        for device in tags {
            for (first, second) in zip(tags, tags.reversed()) {
                var template = Template(name: "a")
                template.alert = .localized(
                    [try #require(LocaleTag("ja")), first, second].map {
                        Template.LocalizedAlert(locale: $0, title: nil, subtitle: nil, body: nil)
                    })
                let choice = try #require(template.localeChoice(for: device))
                let text = template.locales[choice.index]
                #expect(text.selects(device) == (choice.fit == .understood), "\(device) of \(first), \(second)")
                let isSelected = first.selects(device) || second.selects(device)
                #expect(isSelected == (choice.fit == .understood), "\(device) of \(first), \(second)")
            }
        }
    }

    /// What a template is written in beside its default, a device, and what it gets.
    @Test(
        arguments: [
            (["pt-BR", "pt-PT"], "pt-AO", "pt-PT", .understood), (["pt-BR", "pt-PT"], "pt", "en", .fallback),
            (["pt-BR"], "pt-PT", "en", .fallback), (["de-DE"], "de-AT", "en", .fallback),
            (["es-419"], "es-MX", "es-419", .understood), (["es", "es-419"], "es-MX", "es-419", .understood),
            (["es-419", "es"], "es-ES", "es", .understood), (["zh-TW"], "zh-HK", "zh-TW", .standIn),
            (["zh-TW"], "zh-Hant", "zh-TW", .standIn), (["zh-SG", "zh-TW"], "zh-MO", "zh-TW", .standIn),
            (["zh-HK"], "zh-TW", "en", .fallback), (["zh-CN"], "zh-SG", "zh-CN", .standIn),
            (["zh-TW"], "zh-CN", "en", .fallback), (["zh-Hans"], "zh-TW", "en", .fallback),
            (["nb"], "no", "nb", .understood), (["he"], "iw-IL", "he", .understood), (["iw"], "he", "iw", .understood),
            (["fil"], "tl", "fil", .understood), (["zh-Hant"], "yue-Hant", "zh-Hant", .understood),
            (["de", "de-Latn"], "de", "de", .understood), (["ja"], "ko", "en", .fallback),
        ] as [([String], String, String, Template.LocaleChoice.Fit)])
    func `a region stands for the script that it says, and for no other region`(
        written: [String], device: String, text: String, fit: Template.LocaleChoice.Fit
    ) throws {
        var template = Template(name: "a")
        template.alert = .localized(
            try (["en"] + written).map {
                Template.LocalizedAlert(locale: try #require(LocaleTag($0)), title: nil, subtitle: nil, body: nil)
            })
        let choice = try #require(template.localeChoice(for: LocaleTag(device)))
        #expect(template.locales[choice.index].description == text)
        #expect(choice.fit == fit)
    }
}
