import CampaignFiles
import Model
import Testing

struct AudienceParserTests {
    static let rows: [(text: String, expression: AudienceExpression)] = [
        ("everyone", .everyone),
        ("segment(\"fans\")", .segment("fans")),
        ("tag('beta')", .tag("beta")),
        ("country = \"DE\"", .comparison(.country, .equal, .text("DE"))),
        ("country == 'DE'", .comparison(.country, .equal, .text("DE"))),
        ("user_id != \"a \\\"b\\\\\"", .comparison(.userID, .notEqual, .text("a \"b\\"))),
        ("locale in (\"de\", \"pt_br\")", .oneOf(.locale, [.locale(tag("de")), .locale(tag("pt-BR"))])),
        ("locale = \"de\"", .comparison(.locale, .equal, .locale(tag("de")))),
        ("country not in (\"DE\")", .not(.oneOf(.country, [.text("DE")]))),
        ("model is null", .isNull(.model)),
        ("model IS NOT NULL", .not(.isNull(.model))),
        ("app_version >= \"4.10\"", .comparison(.appVersion, .greaterOrEqual, .version(version("4.10")))),
        ("app_version < 4.10", .comparison(.appVersion, .less, .version(version("4.10")))),
        (
            "os_version between 17 and \"18.1\"",
            .between(.osVersion, .version(version("17")), .version(version("18.1")))
        ),
        ("badge > 3", .comparison(.badge, .greater, .number(3))),
        ("badge <= -1", .comparison(.badge, .lessOrEqual, .number(-1))),
        ("alerts_allowed = true", .comparison(.alertsAllowed, .equal, .boolean(true))),
        ("last_seen within 90 days", .within(.lastSeenAt, .seconds(90 * 86_400))),
        ("last_seen_at within 1 hour", .within(.lastSeenAt, .seconds(3600))),
        ("registered not within 2 weeks", .not(.within(.registeredAt, .seconds(14 * 86_400)))),
        (
            "registered_at >= \"2026-11-01\"",
            .comparison(.registeredAt, .greaterOrEqual, .time(Timestamp(milliseconds: 1_793_491_200_000)))
        ),
        (
            "last_seen < '2026-11-01T02:00:00+02:00'",
            .comparison(.lastSeenAt, .less, .time(Timestamp(milliseconds: 1_793_491_200_000)))
        ),
        ("attribute(\"plan\") = \"pro\"", .comparison(.attribute("plan"), .equal, .text("pro"))),
        ("environment = \"sandbox\"", .comparison(.environment, .equal, .text("sandbox"))),
        ("tag(\"a\") and tag(\"b\") and tag(\"c\")", .all([.tag("a"), .tag("b"), .tag("c")])),
        ("tag(\"a\") or tag(\"b\") and tag(\"c\")", .any([.tag("a"), .all([.tag("b"), .tag("c")])])),
        ("(tag(\"a\") or tag(\"b\")) and tag(\"c\")", .all([.any([.tag("a"), .tag("b")]), .tag("c")])),
        ("not tag(\"a\") and tag(\"b\")", .all([.not(.tag("a")), .tag("b")])),
        ("not (tag(\"a\") AND tag(\"b\"))", .not(.all([.tag("a"), .tag("b")]))),
    ]

    private static func tag(_ text: String) -> LocaleTag { LocaleTag(text).known }
    private static func version(_ text: String) -> AppVersion { AppVersion(text).known }

    @Test(arguments: rows) func `an expression means what it says`(text: String, expression: AudienceExpression) {
        let (parsed, problems) = AudienceParser.parse(text)
        #expect(problems == [])
        #expect(parsed == expression)
    }

    @Test(arguments: rows) func `a printed expression reads as the same one`(
        text: String, expression: AudienceExpression
    ) {
        #expect(AudienceParser.parse(expression.text).0 == expression)
    }

    static let faults: [(text: String, offset: Int, what: String, advice: String)] = [
        ("", 0, "the audience is empty", "everyone"),
        ("lang = \"de\"", 0, "unknown audience field \"lang\"", "\"locale\""),
        ("xyzzy = 1", 0, "unknown audience field \"xyzzy\"", "known are installation_id"),
        ("xyzzy = 1", 0, "unknown audience field \"xyzzy\"", "badge, attribute(\"NAME\")"),
        ("attributes.plan = \"pro\"", 0, "unknown audience field \"attributes.plan\"", "write attribute(\"plan\")"),
        ("Attribute.plan is null", 0, "unknown audience field \"Attribute.plan\"", "write attribute(\"plan\")"),
        ("Locale = \"de\"", 0, "unknown audience field \"Locale\"", "\"locale\""),
        ("last-seen within 3 days", 0, "unknown audience field \"last-seen\"", "\"last_seen\""),
        ("segmnt(\"a\")", 0, "unknown audience function \"segmnt\"", "\"segment\""),
        ("country < \"DE\"", 8, "country is a text and does not allow <", "use = != in is null"),
        ("locale > \"de\"", 7, "locale is a language and does not allow >", "use"),
        ("alerts_allowed in (true)", 15, "does not allow in", "use"),
        ("last_seen = \"2026-11-01\"", 10, "does not allow =", #""between" two dates"#),
        ("badge within 3 days", 6, "badge is a whole number and does not allow within", "use"),
        ("attribute(\"age\") > 30", 17, "attribute(\"age\") is a text and does not allow >", "use"),
        ("country = DE", 10, "found the word \"DE\"", "\"DE\""),
        ("country = 5", 10, "country is a text, found the number 5", "\"pro\""),
        ("app_version = \"new\"", 14, "app_version is a version", "4.2"),
        ("badge = 1.5", 8, "badge is a whole number", "3"),
        ("last_seen > \"yesterday\"", 12, "last_seen_at is a time", "2026-11-01"),
        ("last_seen > \"2026-02-30\"", 12, "last_seen_at is a time", "2026-11-01"),
        ("alerts_allowed = 1", 17, "alerts_allowed is true or false", "true"),
        ("environment = \"prod\"", 14, "environment is production or sandbox", "production"),
        ("locale in (\"german_\")", 11, "locale is a language", "pt-BR"),
        ("country", 7, "expected a comparison after country", "= != in"),
        ("country =", 9, "expected a value, found the end", "quotes"),
        ("country in \"DE\"", 11, "expected \"(\"", "in ("),
        ("country in ()", 12, "expected a value", "quotes"),
        ("country in (\"DE\"", 16, "expected \")\"", "close"),
        ("country not = \"DE\"", 12, #"expected "in", "between" or "within""#, "before the field"),
        ("(country = \"DE\"", 15, "expected \")\"", "close"),
        ("country = \"DE\")", 14, #"expected "and", "or" or the end"#, "join"),
        ("country = \"DE\" country = \"AT\"", 15, #"expected "and", "or" or the end"#, "join"),
        ("and country = \"DE\"", 0, "expected a condition, found \"and\"", "write"),
        ("segment(fans)", 8, "expected a name in quotes", "segment("),
        ("tag(\"\")", 4, "the name is empty", "tag("),
        ("last_seen within days", 17, "expected a number of days", "within 90 days"),
        ("last_seen within 90", 19, "expected a unit", "days"),
        ("last_seen within 0 days", 17, "expected a number of days", "within"),
        ("country = \"DE", 10, "is not closed", "close it"),
        ("country = “DE”", 10, "unexpected \"“\"", "straight quotes"),
        ("tag(\"a\") && tag(\"b\")", 9, "unexpected \"&&\"", "write and"),
        ("tag(\"a\") || tag(\"b\")", 9, "unexpected \"||\"", "write or"),
        ("!tag(\"a\")", 0, "\"!\" is not an operator", "write not"),
        ("model is \"x\"", 9, "expected null", "is null"),
        ("app_version between 1 or 2", 22, #"expected "and""#, "between a and b"),
    ]

    @Test(arguments: faults) func `a mistake is found at its place with advice`(
        text: String, offset: Int, what: String, advice: String
    ) throws {
        let (parsed, problems) = AudienceParser.parse(text)
        #expect(parsed == nil)
        let first = try #require(problems.first)
        #expect(first.offset == offset)
        #expect(first.what.contains(what))
        #expect(first.advice.contains(advice))
    }

    @Test func `all mistakes of meaning are reported at once`() {
        let (_, problems) = AudienceParser.parse("contry = \"DE\" or badge = \"x\" or lcale in (\"de\") or country > 1")
        #expect(problems.map(\.offset) == [0, 25, 32, 59, 61])
    }

    @Test func `a hundred levels are read and more are refused`() {
        func nested(_ levels: Int) -> String {
            String(repeating: "(", count: levels) + "tag(\"a\")" + String(repeating: ")", count: levels)
        }
        #expect(AudienceParser.parse(nested(99)).0 == .tag("a"))
        let refused = AudienceParser.parse(nested(100)).1
        #expect(refused.first?.what.contains("nested more than 100") == true)
        #expect(AudienceParser.parse(nested(100_000)).0 == nil)
        #expect(AudienceParser.parse(String(repeating: "not ", count: 100_000) + "tag(\"a\")").0 == nil)
    }

    @Test func `a long expression is refused before it is read, and one with many mistakes is not read to its end`() {
        let long = AudienceParser.parse(String(repeating: "a = 1 or ", count: 40_000) + "a = 1")
        #expect(long.0 == nil && long.1.count == 1 && long.1[0].what.contains("longer than 262144 bytes"))
        let wrong = AudienceParser.parse(String(repeating: "a = 1 or ", count: 20_000) + "a = 1")
        #expect(wrong.0 == nil && (50...52).contains(wrong.1.count))
    }
}

extension Optional {
    /// For the rows of a table: a wrong literal there shows as a failing test.
    fileprivate var known: Wrapped {
        guard let self else { fatalError("a row of the test's table is wrong") }
        return self
    }
}
