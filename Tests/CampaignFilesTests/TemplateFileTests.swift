import CampaignFiles
import Model
import Testing

struct TemplateFileTests {
    private func read(_ text: String) throws -> Template {
        let (template, diagnostics) = TemplateFile.read(text: text, path: "t.yaml")
        #expect(diagnostics.isEmpty)
        return try #require(template)
    }

    private func text(_ parts: TemplateText.Part...) -> TemplateText { TemplateText(parts: parts) }

    @Test func `every key of a localized template arrives`() throws {
        let template = try read(
            """
            template: new-podcast
            default_locale: en
            alert:
              en: {title: "New on {{show}}", subtitle: "S {{ show }}", body: "B"}
              pt_br: {title: "Novo {{show}}", subtitle: "", body: Yes}
            sound: default
            badge: 3
            category: NEWS_CATEGORY
            thread_id: "{{show}}"
            target_content_id: window
            filter_criteria: work
            mutable_content: true
            interruption_level: time-sensitive
            relevance_score: 0.5
            custom: {link_url: "{{link}}", n: 1, f: 1.5, yes: true, none: null, list: [a, {b: 2}], code: 007, word: no}
            """)
        #expect(template.name == "new-podcast")
        #expect(template.defaultLocale == LocaleTag("en"))
        #expect(template.locales.map(\.description) == ["en", "pt-BR"])
        guard case .localized(let blocks) = template.alert else {
            Issue.record("no localized alert")
            return
        }
        #expect(blocks[0].title == text(.literal("New on "), .variable("show")))
        #expect(blocks[0].subtitle == text(.literal("S "), .variable("show")))
        #expect(blocks[1].body == text(.literal("Yes")))
        #expect(template.sound == .named(text(.literal("default"))))
        #expect(template.badge == .number(3))
        #expect(template.category == text(.literal("NEWS_CATEGORY")))
        #expect(template.threadID == text(.variable("show")))
        #expect(template.targetContentID == text(.literal("window")))
        #expect(template.filterCriteria == text(.literal("work")))
        #expect(template.mutableContent)
        #expect(template.interruptionLevel == .timeSensitive)
        #expect(template.relevanceScore == 0.5)
        #expect(template.custom.map(\.key) == ["link_url", "n", "f", "yes", "none", "list", "code", "word"])
        #expect(
            template.custom.map(\.value) == [
                .text(text(.variable("link"))), .integer(1), .number(1.5), .boolean(true), .null,
                .array([.text(text(.literal("a"))), .object([TemplateValue.Member("b", .integer(2))])]),
                .text(text(.literal("007"))), .text(text(.literal("no"))),
            ])
    }

    @Test func `texts may be left to the app`() throws {
        let template = try read(
            """
            template: a
            alert:
              loc_key: NEW
              loc_args: ["{{show}}", x]
              title_loc_key: T
              title_loc_args: ["{{device.model}}"]
              subtitle_loc_key: S
              subtitle_loc_args: []
            """)
        #expect(
            template.alert
                == .byApp(
                    Template.LocKeyAlert(
                        locKey: "NEW", locArgs: [text(.variable("show")), text(.literal("x"))], titleLocKey: "T",
                        titleLocArgs: [text(.device(.model))], subtitleLocKey: "S")))
    }

    @Test(
        arguments: [
            ("1", .number(1)), ("+1", .increment(1)), ("\"+2\"", .increment(2)), ("0", .number(0)),
            ("+0", .increment(0)),
            ("-1", nil), ("1.5", nil), ("one", nil), ("++1", nil), ("99999999999", nil), ("[1]", nil),
        ] as [(String, Template.Badge?)])
    func `a badge with a plus adds and one without sets`(badge: String, expected: Template.Badge?) {
        let (template, _) = TemplateFile.read(text: "template: a\nbadge: \(badge)\n", path: "t.yaml")
        #expect(template?.badge == expected)
        #expect((template == nil) == (expected == nil))
    }

    @Test func `a critical sound has a name and a volume`() throws {
        let template = try read("template: a\nsound: {critical: 1, name: siren.caf, volume: 0.8}\n")
        #expect(template.sound == .critical(name: text(.literal("siren.caf")), volume: 0.8))
        let plain = try read("template: a\nsound: {critical: 1}\n")
        #expect(plain.sound == .critical(name: text(.literal("default")), volume: nil))
    }

    @Test func `Norwegian is a language and not a no`() throws {
        let template = try read("template: a\ndefault_locale: no\nalert: {no: {title: Hei}}\n")
        #expect(template.locales.map(\.description) == ["no"])
    }

    @Test func `several languages without a default are worth a warning`() {
        let (template, diagnostics) = TemplateFile.read(
            text: "template: a\nalert: {en: {title: A}, de: {title: B}}\n", path: "t.yaml")
        #expect(template != nil)
        #expect(diagnostics.map(\.severity) == [.warning])
    }

    /// Each body stands in line 4 behind four blanks; its placeholder is not closed.
    @Test(arguments: [
        ("body: a {{nope", 4, 13), ("body: \"a {{nope\"", 4, 14), ("body: 'it''s {{nope'", 4, 18),
        ("body: \"\\u00e9\\n\\\" {{nope\"", 4, 23), ("body: |\n        one\n        two {{nope", 6, 13),
        ("body: >-\n        one\n        two {{nope", 6, 13), ("body: one\n        two {{nope", 5, 13),
        ("body: \"é😀 {{nope\"", 4, 15),
    ])
    func `a broken placeholder is found at its line and column`(body: String, line: Int, column: Int) {
        let text = "template: a\nalert:\n  en:\n    \(body)\n"
        let (_, diagnostics) = TemplateFile.read(text: text, path: "t.yaml")
        #expect(diagnostics.map { [$0.line, $0.column] } == [[line, column]])
    }
}

struct CampaignRulesTests {
    private func campaign(_ type: String, _ variables: String = "{}") throws -> CampaignSource {
        let text = """
            campaign: spring
            topic: com.example.a
            push_type: \(type)
            template: words
            variables: \(variables)
            """
        return try #require(CampaignFile.source(text: text, path: "c.yaml").0)
    }

    private func template(_ rest: String) throws -> TemplateSource {
        try #require(TemplateFile.source(text: "template: words\n" + rest, path: "t.yaml").0)
    }

    @Test(arguments: [
        "alert: {en: {title: A}}", "sound: default", "badge: 1", "category: A", "thread_id: A",
        "mutable_content: false",
        "interruption_level: passive", "relevance_score: 1", "target_content_id: A", "filter_criteria: A",
    ])
    func `a background template holds only custom keys`(line: String) throws {
        let found = CampaignRules.check(try campaign("background"), try template("\(line)\ncustom: {a: 1}"))
        #expect(found.count == 1)
        #expect(found.first?.path == "t.yaml")
        #expect(found.first?.line == 2)
        #expect(found.first?.advice.contains("content-available") == true)
    }

    @Test func `a background template with custom keys is right`() throws {
        #expect(CampaignRules.check(try campaign("background"), try template("custom: {a: 1}")).isEmpty)
    }

    @Test(arguments: [
        ("custom: {a: 1}", false), ("sound: default", true), ("badge: 0", true), ("alert: {en: {body: A}}", true),
    ])
    func `an alert shows or plays something`(line: String, isRight: Bool) throws {
        #expect(CampaignRules.check(try campaign("alert"), try template(line)).isEmpty == isRight)
    }

    @Test func `a variable that the campaign lacks is an error where it is used`() throws {
        let found = CampaignRules.check(
            try campaign("alert", "{title: x}"), try template("alert:\n  en: {title: \"{{title}} {{titel}}\"}"))
        #expect(
            found.map(\.description) == [
                "t.yaml:3:26: error: campaign \"spring\" has no variable \"titel\"; did you mean {{title}}?"
            ])
    }

    @Test func `a variable that the template does not use is a warning where it is declared`() throws {
        let found = CampaignRules.check(try campaign("alert", "{title: x}"), try template("sound: default"))
        #expect(found.map(\.severity) == [.warning])
        #expect(found.map { "\($0.path):\($0.line):\($0.column)" } == ["c.yaml:5:13"])
    }

    @Test func `a template with another name than the campaign asks for is an error`() throws {
        let other = try #require(TemplateFile.source(text: "template: others\nsound: default", path: "t.yaml").0)
        #expect(CampaignRules.check(try campaign("alert"), other).map(\.line) == [1])
    }
}
