import Model
import Testing

struct `A look at the texts` {
    private static func rules(_ body: String, _ values: [String: String] = [:], part: String = "body") throws
        -> [String]
    {
        var template = Template(name: "t")
        let text = try TemplateText(parsing: body)
        let locale = try #require(LocaleTag("en"))
        template.alert = .localized([
            .init(
                locale: locale, title: part == "title" ? text : nil, subtitle: part == "subtitle" ? text : nil,
                body: part == "body" ? text : nil)
        ])
        return template.lint(values).map(\.rule.rawValue)
    }

    @Test(arguments: [
        // Sent to everybody once, each of them.
        ("1", "short-text"), ("Hi", "short-text"), ("!!", "short-text"), ("…", "short-text"), ("", "short-text"),
        ("🎉", "short-text"), ("Test wiadomości push", "test-words"), ("Integration Test Email #1", "test-words"),
        ("TEST", "test-words"), ("This is a test of the new system, please ignore it all", "test-words"),
        ("asdf", "test-words"), ("テスト", "test-words"), ("Тест", "test-words"),
        ("IIIIII like testing", "test-words repetition"),
        ("Lorem ipsum dolor sit amet, consectetur", "lorem-ipsum"), ("IIIII", "repetition"),
        ("Aaaaaaaaaargh, it is out", "repetition"), ("Hello }}", "unfilled-placeholder"),
        ("Hello ${name}", "unfilled-placeholder"), ("Hello {name}", "unfilled-placeholder"),
        ("Hello {0}", "unfilled-placeholder"), ("Hello %@, look", "unfilled-placeholder"),
        ("TODO", "test-words"), ("TODO: the text", "test-words"), ("FIXME please", "test-words"),
        ("[DRAFT] Summer sale for all", "test-words"), ("xxx", "test-words"), ("test123", "test-words"),
        ("*Probe*", "test-words"), ("Hello [Name], look", "unfilled-placeholder"),
        ("Hello undefined", "unfilled-placeholder"), ("Price: NaN €", "unfilled-placeholder"),
        ("Hello [[name]]", "unfilled-placeholder"), ("Hello <%= name %>", "unfilled-placeholder"),
        ("Your p\u{430}ssword was changed", "mixed-scripts"), ("\u{391}pple news", "mixed-scripts"),
    ])
    func `finds what nobody meant`(text: String, rules: String) throws {
        #expect(try Self.rules(text).joined(separator: " ") == rules)
    }

    @Test(arguments: [
        "New: 雨", "雨", "テ", "비", "Yes", "2:10", "Ура!", "Ναι", "New on {{show}}", "{{title}}", "{{device.model}}",
        "Купите iPhone-ом", "iPhoneで聴く", "Wir sind da: Ελλάδα und Россия", "5 μg or 3 kΩ",
        "The test drive of your life is here now",
        "Who will win the second test match today", "Test match: England win", "Todo a mitad de precio",
        "[Live] Goal!", "NFL draft: all picks", "Zur Probe hören", "Undefinedness", "Goooool!", "www.example.com",
        "Aaaargh, it is out", "ｗｗｗ今すぐ",
        "Prices {from 5 €} today", "100 % @ home", "f(x) = {x | x > 0}", "Contest of the week", "ーーーーーーーーー雨",
    ])
    func `leaves alone what people write`(text: String) throws {
        #expect(try Self.rules(text) == [])
    }

    @Test func `looks at the values that are known, and not at those that are not`() throws {
        #expect(try Self.rules("{{a}}", ["a": "1"]) == ["short-text"])
        #expect(try Self.rules("{{a}}", ["a": ""]) == [])
        #expect(try Self.rules("New: {{a}}", ["a": "{{title}}"]) == ["unfilled-placeholder"])
        #expect(try Self.rules("New: {{a}}", ["a": "undefined"]) == ["unfilled-placeholder"])
        #expect(try Self.rules("pass{{a}}", ["a": "w\u{43E}rd"]) == ["mixed-scripts"])
    }

    @Test func `a subtitle may be short, a title may not`() throws {
        #expect(try Self.rules("1", part: "subtitle") == [])
        #expect(try Self.rules("1", part: "title") == ["short-text"])
    }

    @Test func `says nothing of test words in a template that is for tests`() throws {
        var template = Template(name: "t")
        let locale = try #require(LocaleTag("en"))
        let text = TemplateText(literal: "TEST")
        template.alert = .localized([.init(locale: locale, title: nil, subtitle: nil, body: text)])
        #expect(template.lint([:]).map(\.rule) == [.testWords])
        template.isTest = true
        #expect(template.lint([:]).isEmpty)
    }

    @Test(arguments: LintRule.allCases) func `says nothing of what the template allows`(rule: LintRule) throws {
        var template = Template(name: "t")
        let locale = try #require(LocaleTag("en"))
        let texts = [
            TemplateText(literal: "1"), TemplateText(literal: "\u{391}sdf lorem ipsum {a}"),
            TemplateText(literal: "IIIII"),
        ]
        template.alert = .localized([.init(locale: locale, title: texts[0], subtitle: texts[1], body: texts[2])])
        let all = template.lint([:])
        template.lintAllowed = [rule.rawValue]
        #expect(template.lint([:]) == all.filter { $0.rule != rule })
        #expect(Set(all.map(\.rule)).count == 5)
    }

    @Test func `names the links that are known whole`() throws {
        var template = Template(name: "t")
        template.category = try TemplateText(parsing: "{{link}}")
        template.custom = [
            .init("a", .text(try TemplateText(parsing: "https://example.com/{{id}}"))),
            .init("b", .object([.init("c", .text(try TemplateText(parsing: "see http://example.com/b now")))])),
            .init("d", .text(try TemplateText(parsing: "app://open/1"))),
        ]
        #expect(template.links([:]) == ["http://example.com/b"])
        let all = ["https://example.com/l", "https://example.com/7", "http://example.com/b"]
        #expect(template.links(["id": "7", "link": all[0]]) == all)
    }

    @Test func `a run is looked at with all its variants and what it was given`() throws {
        let locale = try #require(LocaleTag("en"))
        func template(_ body: String) throws -> Template {
            var template = Template(name: body)
            template.alert = .localized([
                .init(locale: locale, title: nil, subtitle: nil, body: try TemplateText(parsing: body))
            ])
            return template
        }
        var campaign = Campaign(name: "c", topic: "com.example.a", pushType: .alert, template: "1")
        campaign.variants = [
            .init(name: "a", weight: 1, template: "{{x}}"), .init(name: "b", weight: 1, template: "All"),
        ]
        let definition = RunDefinition(
            campaign: campaign, template: try template("1"),
            variantTemplates: ["a": try template("{{x}}"), "b": try template("All")], variables: ["x": "?"],
            plannedAt: Timestamp(milliseconds: 0))
        let found = definition.lint()
        #expect(found.map(\.rule) == [.shortText])
        #expect(
            found.first?.description
                == "the body in en is \"?\": no letter; under 3 letters is usually a mistake [short-text]")
    }
}
