import Model
import Testing

struct TemplateLocaleTests {
    private func template(_ locales: [String], defaultLocale: String? = nil) throws -> Template {
        var template = Template(name: "a")
        template.alert = .localized(
            try locales.map {
                Template.LocalizedAlert(
                    locale: try #require(LocaleTag($0)), title: TemplateText(literal: $0), subtitle: nil, body: nil)
            })
        template.defaultLocale = defaultLocale.flatMap { LocaleTag($0) }
        return template
    }

    @Test(
        arguments: [
            ("en", "en"), ("de", "de"), ("de-AT", "de"), ("de_CH", "de"), ("pt-BR", "pt-BR"), ("pt_br", "pt-BR"),
            ("pt", "en"), ("pt-PT", "en"), ("zh-Hant-HK", "zh-Hant"), ("zh-Hant", "zh-Hant"),
            ("zh-Hans-CN", "zh"),
            ("zh", "zh"), ("ja-JP", "en"), ("EN-gb", "en"), (nil, "en"),
        ] as [(String?, String)])
    func `a device gets its own language, then a wider one, then the default`(device: String?, block: String) throws {
        let template = try template(["de", "pt-BR", "zh", "zh-Hant", "en"], defaultLocale: "en")
        let index = try #require(template.localeChoice(for: device.flatMap { LocaleTag($0) })?.index)
        #expect(template.locales[index].description == block)
    }

    @Test(arguments: [
        ("zh-TW", "zh-Hant"), ("zh_HK", "zh-Hant"), ("zh-MO", "zh-Hant"), ("zh-Hant-TW", "zh-Hant"),
        ("zh-CN", "zh-Hans"),
        ("zh-SG", "zh-Hans"), ("zh", "zh-Hans"), ("zh-TW-u-ca-roc", "zh-Hant"), ("zh-Latn", "en"), ("sr", "sr-Cyrl"),
        ("sr-RS", "sr-Cyrl"), ("sr-ME", "sr-Latn"), ("sr-Latn-RS", "sr-Latn"), ("pa-PK", "en"), ("uz-AF", "en"),
        ("yue-HK", "yue-Hant"), ("pt", "en"),
    ])
    func `a script that goes without saying is found`(device: String, block: String) throws {
        let template = try template(
            ["en", "zh-Hans", "zh-Hant", "sr-Latn", "sr-Cyrl", "pa-Guru", "uz-Latn", "yue-Hant", "pt-BR"])
        let index = try #require(template.localeChoice(for: LocaleTag(device))?.index)
        #expect(template.locales[index].description == block)
    }

    @Test(arguments: [
        ("zh-Hant-TW", "zh-TW"), ("zh-Hans-TW", "zh"), ("zh-Hant-HK", "zh"), ("zh-TW", "zh-TW"), ("zh-Hans-CN", "zh"),
    ])
    func `a device that says its script finds a text that does not`(device: String, block: String) throws {
        let template = try template(["en", "zh", "zh-TW"])
        let index = try #require(template.localeChoice(for: LocaleTag(device))?.index)
        #expect(template.locales[index].description == block)
    }

    @Test func `without a default the first block is used`() throws {
        #expect(try template(["de", "en"]).localeChoice(for: LocaleTag("fr"))?.index == 0)
        #expect(try template(["de", "en"], defaultLocale: "it").localeChoice(for: LocaleTag("fr"))?.index == 0)
    }

    @Test func `a template without texts has no language`() {
        #expect(Template(name: "a").localeChoice(for: LocaleTag("de")) == nil)
    }

    @Test func `variables and device fields are found everywhere`() throws {
        var template = try template(["en"])
        template.sound = .named(try TemplateText(parsing: "{{a}}"))
        template.category = try TemplateText(parsing: "{{b}}")
        template.threadID = try TemplateText(parsing: "{{c}}")
        template.targetContentID = try TemplateText(parsing: "{{d}}")
        template.filterCriteria = try TemplateText(parsing: "{{e}}")
        template.custom = [
            TemplateValue.Member(
                "x", .array([.object([.init("y", .text(try TemplateText(parsing: "{{f}} {{device.model}}")))]), .null]))
        ]
        #expect(template.variables == ["a", "b", "c", "d", "e", "f"])
        #expect(template.deviceFields == [.model])
        template.alert = .byApp(Template.LocKeyAlert(locKey: "K", locArgs: [try TemplateText(parsing: "{{g}}")]))
        #expect(template.variables.contains("g"))
    }
}

struct TemplateTextTests {
    @Test(
        arguments: [
            ("", []), ("plain", [.literal("plain")]), ("{{a}}", [.variable("a")]), ("{{ a }}", [.variable("a")]),
            ("x {{a}}{{b_1-c}} y", [.literal("x "), .variable("a"), .variable("b_1-c"), .literal(" y")]),
            ("{{device.model}}", [.device(.model)]), ("{{device.last_seen}}", [.device(.lastSeenAt)]),
            ("{{device.attributes.plan}}", [.device(.attribute("plan"))]), ("{a} }} {", [.literal("{a} }} {")]),
            ("é😀{{größe}}", [.literal("é😀"), .variable("größe")]),
        ] as [(String, [TemplateText.Part])])
    func `placeholders are told from text`(text: String, parts: [TemplateText.Part]) throws {
        #expect(try TemplateText(parsing: text).parts == parts)
    }

    @Test(
        arguments: [
            ("a {{b", .unclosed(offset: 2)), ("{{}}", .malformed("", offset: 0)),
            ("é {{1a}}", .malformed("1a", offset: 2)),
            ("{{a b}}", .malformed("a b", offset: 0)), ("{{a}} {{a.b}}", .malformed("a.b", offset: 6)),
            ("{{device.nme}}", .unknownDeviceField("nme", offset: 0)), ("{{{a}}}", .malformed("{a", offset: 0)),
            ("{{device.attributes.}}", .unknownDeviceField("attributes.", offset: 0)),
            ("{{device.token}}", .unknownDeviceField("token", offset: 0)),
        ] as [(String, TemplateText.ParseError)])
    func `a broken placeholder is refused at its place`(text: String, error: TemplateText.ParseError) {
        #expect(throws: error) { try TemplateText(parsing: text) }
    }
}
