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
            launch_image: start.png
            content_available: true
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
        #expect(template.launchImage == text(.literal("start.png")))
        #expect(template.contentAvailable)
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

    @Test func `every key of a Live Activity arrives`() throws {
        let template = try read(
            """
            template: match
            event: start
            content_state: {home: 0, clock: "{{kickoff}}", scorers: []}
            attributes_type: MatchAttributes
            attributes: {teams: [A, "{{away}}"]}
            stale_date: +1h30m
            dismissal_date: 2026-12-01T12:00Z
            input_push_token: true
            input_push_channel: "{{channel}}"
            relevance_score: 75
            alert: {en: {title: Kick-off}}
            """)
        var activity = LiveActivity(event: .start)
        activity.contentState = [
            .init("home", .integer(0)), .init("clock", .text(text(.variable("kickoff")))), .init("scorers", .array([])),
        ]
        activity.attributesType = "MatchAttributes"
        activity.attributes = [
            .init("teams", .array([.text(text(.literal("A"))), .text(text(.variable("away")))]))
        ]
        activity.staleDate = .afterSending(.seconds(5400))
        activity.dismissalDate = .at(Timestamp(milliseconds: 1_796_126_400_000))
        activity.inputPushToken = true
        activity.inputPushChannel = text(.variable("channel"))
        #expect(template.liveActivity == activity)
        #expect(template.relevanceScore == 75)
        #expect(template.variables == ["kickoff", "away", "channel"])
    }

    @Test(
        arguments: [
            ("0", .at(Timestamp(milliseconds: 0))), ("1796126400", .at(Timestamp(milliseconds: 1_796_126_400_000))),
            ("2026-12-01", .at(Timestamp(milliseconds: 1_796_083_200_000))), ("+0", .afterSending(.zero)),
            ("\"+4h\"", .afterSending(.seconds(14_400))), ("4h", nil), ("+4", nil), ("-1h", nil), ("soon", nil),
        ] as [(String, LiveActivity.Moment?)])
    func `a moment is a time, UNIX seconds or a duration after sending`(text: String, moment: LiveActivity.Moment?) {
        let file = "template: a\nevent: end\ndismissal_date: \(text)\n"
        let (template, diagnostics) = TemplateFile.read(text: file, path: "t.yaml")
        #expect(template?.liveActivity?.dismissalDate == moment)
        #expect(diagnostics.isEmpty == (moment != nil))
    }

    @Test func `the push magic of device management arrives`() throws {
        let template = try read("template: a\nmdm: \"{{device.attributes.push_magic}}\"\n")
        #expect(template.pushMagic == text(.device(.attribute("push_magic"))))
        #expect(template.deviceFields == [.attribute("push_magic")])
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

    @Test(arguments: [
        "12345678901234567890", "-9223372036854775809", "3.14159265358979323846", "0.1000000000000000055", "1e400",
        "1e-400", "18446744073709551615.5",
    ])
    func `a number that would be rounded is refused, and sent whole as a text`(number: String) throws {
        let (none, problems) = TemplateFile.read(
            text: "template: a\ncustom: {n: [1, {m: \(number)}]}\n", path: "t.yaml")
        #expect(none == nil)
        #expect(problems.map { "\($0.line):\($0.column)" } == ["2:21"])
        #expect(problems.first?.what.contains("the number \(number) cannot be kept exactly") == true)
        let (quoted, _) = TemplateFile.read(text: "template: a\ncustom: {n: \"\(number)\"}\n", path: "t.yaml")
        #expect(quoted?.custom == [.init("n", .text(TemplateText(literal: number)))])
    }

    @Test(arguments: [
        ("9223372036854775807", TemplateValue.integer(.max)), ("0.1", .number(0.1)), ("1.50", .number(1.5)),
        ("1e3", .number(1000)), ("-0.0", .number(-0.0)), ("1E22", .number(1e22)), ("1e-300", .number(1e-300)),
        (".5", .number(0.5)), ("007", .text(TemplateText(literal: "007"))),
        ("1.2.3", .text(TemplateText(literal: "1.2.3"))),
    ])
    func `a number that is kept as it is written is a number`(text: String, value: TemplateValue) throws {
        let (template, problems) = TemplateFile.read(text: "template: a\ncustom: {n: \(text)}\n", path: "t.yaml")
        #expect(problems.isEmpty)
        #expect(template?.custom == [.init("n", value)])
    }

    @Test(arguments: ["1_000", "-1_000.5", "0x1F", "0o17", "0b101", "+0xff", ".inf", "-.INF", ".nan"])
    func `a number for other readers of YAML is refused, and sent as a text in quotes`(number: String) throws {
        let (none, problems) = TemplateFile.read(text: "template: a\ncustom: {n: [1, \(number)]}\n", path: "t.yaml")
        #expect(none == nil && problems.count == 1)
        #expect(problems.first?.what.contains("\(number) is a number for some YAML parsers") == true)
        let (quoted, _) = TemplateFile.read(text: "template: a\ncustom: {n: \"\(number)\"}\n", path: "t.yaml")
        #expect(quoted?.custom == [.init("n", .text(TemplateText(literal: number)))])
    }

    @Test(arguments: ["_1", "1_", "0xyz", "1_a", "2026-11-01", "12:30", "+49 30 1234", "..inf", "v0x1F"])
    func `a text that only looks like a number stays a text`(text: String) throws {
        let (template, problems) = TemplateFile.read(text: "template: a\ncustom: {n: \(text)}\n", path: "t.yaml")
        #expect(problems.isEmpty)
        #expect(template?.custom == [.init("n", .text(TemplateText(literal: text)))])
    }

    @Test func `merge keys are refused in words, and a key in quotes is one`() throws {
        let text = "template: a\nsound: default\ncustom:\n  base: &base {a: 1}\n  more: {<<: *base, b: 2}\n"
        let problems = TemplateFile.read(text: text, path: "t.yaml").1
        #expect(problems.map { "\($0.line):\($0.column) \($0.what)" } == ["5:10 merge keys (<<) are not supported"])
        let (quoted, none) = TemplateFile.read(text: "template: a\ncustom: {\"<<\": 1}\n", path: "t.yaml")
        #expect(none.isEmpty && quoted?.custom.first?.key == "<<")
    }
}
