import Foundation
import Model
import Rendering
import Sending
import Testing

@Suite struct `Payload rendering` {
    private func text(_ source: String) throws -> TemplateText { try TemplateText(parsing: source) }

    private func template() throws -> Template {
        var template = Template(name: "t")
        template.alert = .localized([
            .init(
                locale: try tag("en"), title: try text("New on {{show}}"), subtitle: nil, body: try text("{{title}}!")),
            .init(
                locale: try tag("de"), title: try text("Neu bei {{show}}"), subtitle: nil, body: try text("{{title}}")),
        ])
        template.defaultLocale = try tag("en")
        return template
    }

    private func tag(_ text: String) throws -> LocaleTag { try #require(LocaleTag(text)) }

    private func renderer(
        _ template: Template, _ pushType: PushType = .alert,
        _ variables: [String: String] = ["show": "S", "title": "T"]
    ) throws -> PayloadRenderer {
        try PayloadRenderer(template: template, pushType: pushType, variables: variables)
    }

    private func string(_ prototype: PayloadPrototype, fields: [String?] = [], badge: Int = 0) -> String {
        String(decoding: prototype.payload(fields: fields, badge: badge), as: UTF8.self)
    }

    @Test func `each locale is rendered once, in the order written`() throws {
        let renderer = try renderer(try template())
        #expect(
            renderer.prototypes.map { string($0) } == [
                #"{"aps":{"alert":{"title":"New on S","body":"T!"}}}"#,
                #"{"aps":{"alert":{"title":"Neu bei S","body":"T"}}}"#,
            ])
        #expect(renderer.prototypes.map(\.isCommon) == [true, true])
    }

    @Test(
        arguments: [("de-AT", 1), ("de", 1), ("en-GB", 0), ("fr", 0), ("not a tag", 0), (nil, 0)] as [(String?, Int)])
    func `a device gets the block its locale asks for`(locale: String?, index: Int) throws {
        #expect(try renderer(try template()).choice(forLocale: locale).prototype == index)
    }

    @Test func `every key of aps stands where Apple wants it`() throws {
        var template = try template()
        template.badge = .number(3)
        template.sound = .critical(name: try text("bell.caf"), volume: 0.8)
        template.category = try text("NEWS_CATEGORY")
        template.threadID = try text("{{show}}")
        template.mutableContent = true
        template.interruptionLevel = .timeSensitive
        template.relevanceScore = 0.5
        template.targetContentID = try text("window")
        template.filterCriteria = try text("work")
        template.custom = [
            .init("link_url", .text(try text("https://e.com/{{title}}"))),
            .init("n", .object([.init("list", .array([.integer(1), .number(1.5), .boolean(true), .null]))])),
        ]
        let json = string(try renderer(template).prototypes[0])
        #expect(
            json == #"{"aps":{"alert":{"title":"New on S","body":"T!"},"badge":3,"#
                + #""sound":{"critical":1,"name":"bell.caf","volume":0.8},"thread-id":"S","category":"NEWS_CATEGORY","#
                + #""mutable-content":1,"target-content-id":"window","interruption-level":"time-sensitive","#
                + #""relevance-score":0.5,"filter-criteria":"work"},"link_url":"https://e.com/T","#
                + #""n":{"list":[1,1.5,true,null]}}"#)
    }

    @Test func `a background payload holds content-available and the custom keys alone`() throws {
        var template = Template(name: "t")
        template.custom = [.init("feed", .text(try text("{{show}}")))]
        #expect(
            string(try renderer(template, .background).prototypes[0]) == #"{"aps":{"content-available":1},"feed":"S"}"#)
    }

    @Test func `texts that the app translates are sent as keys and arguments`() throws {
        var template = Template(name: "t")
        template.alert = .byApp(
            .init(locKey: "NEW", locArgs: [try text("{{show}}"), try text("x")], titleLocKey: "TITLE"))
        #expect(
            string(try renderer(template).prototypes[0])
                == #"{"aps":{"alert":{"title-loc-key":"TITLE","loc-key":"NEW","loc-args":["S","x"]}}}"#)
    }

    @Test func `device fields and the badge are filled in per device`() throws {
        var template = Template(name: "t")
        template.alert = .localized([
            .init(locale: try tag("en"), title: nil, subtitle: nil, body: try text("Hi {{device.model}} {{title}}"))
        ])
        template.badge = .increment(2)
        let renderer = try renderer(template)
        #expect(renderer.badgeIncrement == 2)
        #expect(renderer.fields == [.model])
        let prototype = renderer.prototypes[0]
        #expect(!prototype.isCommon)
        #expect(
            string(prototype, fields: [#"a"b"#], badge: 7) == #"{"aps":{"alert":{"body":"Hi a\"b T"},"badge":7}}"#)
        #expect(string(prototype, fields: [nil], badge: 1) == #"{"aps":{"alert":{"body":"Hi  T"},"badge":1}}"#)
    }

    @Test(arguments: [(.increment(2), 7), (.number(3), 3)] as [(Template.Badge, Int)])
    func `the badge in a text is the number that is sent`(badge: Template.Badge, sent: Int) throws {
        var template = Template(name: "t")
        template.alert = .localized([
            .init(locale: try tag("en"), title: nil, subtitle: nil, body: try text("{{device.badge}} new"))
        ])
        template.badge = badge
        let prototype = try renderer(template).prototypes[0]
        #expect(string(prototype, badge: 7) == #"{"aps":{"alert":{"body":"\#(sent) new"},"badge":\#(sent)}}"#)
    }

    @Test(arguments: [String?.none, "", " ", "\t", "\n", "\u{200B}", "\u{A0}\u{FEFF}"])
    func `a variable without a sign to be seen is an error that names it`(value: String?) throws {
        let template = try template()
        let values = ["show": "S"].merging(value.map { ["title": $0] } ?? [:]) { $1 }
        #expect(throws: PayloadRenderer.RenderError.variablesMissing(["title"])) {
            try PayloadRenderer(template: template, pushType: .alert, variables: values)
        }
    }

    static let awkward = [
        "\"quotes\" and \\backslashes\\", "line\nbreak\r\ttab", "\u{0}\u{1}\u{1F}control\u{7F}", "emoji 👩‍👩‍👧‍👦🇩🇪",
        "שלום مرحبا", "</script>",
        "a\u{2028}\u{2029}", "é e\u{301}", "{{", "}", "𝕊",
    ]

    @Test(arguments: awkward)
    func `any text comes out of a JSON parser as it went in`(value: String) throws {
        var template = Template(name: "t")
        template.custom = [.init("v", .text(try text("{{title}}"))), .init(value, .text(TemplateText(literal: value)))]
        let payload = try renderer(template, .background, ["title": value]).prototypes[0].payload(fields: [], badge: 0)
        let parsed = try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
        #expect(parsed["v"] as? String == value)
        #expect(parsed[value] as? String == value)
    }

    @Test func `bytes are counted after serialisation`() throws {
        var template = Template(name: "t")
        template.custom = [.init("v", .text(try text("ü\"")))]
        let prototype = try renderer(template, .background).prototypes[0]
        #expect(prototype.commonByteCount == #"{"aps":{"content-available":1},"v":"ü\""}"#.utf8.count)
        #expect(prototype.worstCaseByteCount(fieldMaxBytes: 100) == prototype.commonByteCount)
    }
}
