import CampaignFiles
import Model
import Testing

struct CampaignRulesTests {
    private func campaign(_ type: String, _ variables: String = "{}") throws -> LocatedCampaign {
        let text = """
            campaign: spring
            topic: com.example.a
            push_type: \(type)
            template: words
            variables: \(variables)
            expires_after: 1h
            audience: everyone
            """
        return try #require(CampaignFile.source(text: text, path: "c.yaml").0)
    }

    private func template(_ rest: String) throws -> TemplateSource {
        try #require(TemplateFile.source(text: "template: words\n" + rest, path: "t.yaml").0)
    }

    /// The column is that of the value.
    @Test(
        arguments: [
            ("country in (\"DE\", \"Narnia\")", 29, "no device has the country \"Narnia\"", "such as \"DE\""),
            ("country = 'Germany'", 21, "no device has the country \"Germany\"", "write its code \"DE\""),
            ("not (country in (\"QQ\"))", 28, "\"QQ\" is not a known code", "check the code"),
            (
                "locale in (\"de\") and time_zone = \"Mars/Base\"", 44, "\"Mars/Base\" is not a known IANA name",
                "Europe"
            ),
        ] as [(String, Int, String, String)])
    func `a country or a zone that no device has is a warning`(
        audience: String, column: Int, what: String, advice: String
    ) throws {
        let head = "campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: words\n"
        let (read, found) = CampaignFile.read(text: head + "audience: \(audience)\n", path: "c.yaml")
        #expect(read != nil && found.map(\.severity) == [.warning], "\(found)")
        let warning = try #require(found.first)
        #expect(warning.line == 5 && warning.column == column, "\(warning)")
        #expect(warning.what.contains(what) && warning.advice.contains(advice), "\(warning)")
        let (_, none) = CampaignFile.read(
            text: head + "audience: country in (\"de\", \"XK\", \"419\") and time_zone = \"Europe/Berlin\"\n",
            path: "c.yaml")
        #expect(none.isEmpty, "\(none)")
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

    /// One line for every key of a template, and the push types whose pushes can carry it.
    private static let keyRows: [(line: String, types: Set<String>)] = [
        ("default_locale: en", []), ("alert: {en: {title: A}}", ["alert", "liveactivity"]),
        ("sound: default", ["alert"]), ("badge: 1", ["alert"]), ("category: A", ["alert"]), ("thread_id: A", ["alert"]),
        ("target_content_id: A", ["alert"]), ("filter_criteria: A", ["alert"]), ("launch_image: A", ["alert"]),
        ("content_available: true", ["alert"]), ("mutable_content: true", ["alert"]),
        ("interruption_level: active", ["alert"]), ("relevance_score: 1", ["alert", "liveactivity"]),
        (
            "custom: {container-identifier: A}",
            [
                "alert", "background", "location", "voip", "complication", "fileprovider", "liveactivity", "pushtotalk",
            ]
        ),
        ("event: end", ["liveactivity"]), ("event: end\ncontent_state: {a: 1}", ["liveactivity"]),
        ("event: end\nstale_date: 0", ["liveactivity"]), ("event: end\ndismissal_date: 0", ["liveactivity"]),
        ("mdm: A", ["mdm"]), ("test: true", Set(PushType.allCases.map(\.rawValue))),
        ("lint: {allow: [short-text]}", Set(PushType.allCases.map(\.rawValue))),
    ]

    /// What makes a template right for its type before the key in question is added.
    private static let enough = [
        "alert": "sound: default", "liveactivity": "event: end", "mdm": "mdm: A",
        "fileprovider": "custom: {container-identifier: A}",
    ]

    @Test(arguments: PushType.allCases) func `a template holds only what its push type can carry`(type: PushType) throws
    {
        let campaign = try campaign(type.rawValue)
        let base = Self.enough[type.rawValue, default: ""]
        #expect(TemplateRules.check(try template(base), for: type).isEmpty)
        for row in Self.keyRows where row.line.hasPrefix("default_locale") == false {
            let lines = row.line.split(separator: "\n").map(String.init)
            let isAdded = !base.isEmpty && !lines.contains { $0.hasPrefix(base.prefix { $0 != ":" }) }
            let found = CampaignRules.check(
                campaign, try template((isAdded ? [base] + lines : lines).joined(separator: "\n")))
            #expect(found.isEmpty == row.types.contains(type.rawValue), "\(row.line): \(found)")
        }
    }

    @Test(arguments: ["{en: {title: A, subtitle: B}}", "{loc_key: A, subtitle_loc_key: B}"])
    func `the alert of a Live Activity has no subtitle`(alert: String) throws {
        let found = CampaignRules.check(try campaign("liveactivity"), try template("event: end\nalert: \(alert)"))
        #expect(found.map(\.line) == [3])
    }

    @Test func `the table has a row for every key of a template`() {
        let keys = Set(
            Self.keyRows.flatMap { $0.line.split(separator: "\n").map { String($0.prefix { $0 != ":" }) } })
        let belongTogether: Set = [
            "template", "attributes", "attributes_type", "input_push_token", "input_push_channel",
        ]
        #expect(keys.union(belongTogether) == Set(TemplateKeys.shape.keys.map(\.name)))
    }

    private func campaign(for audience: String) throws -> LocatedCampaign {
        let text =
            "campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: words\naudience: '\(audience)'\n"
            + "expires_after: 1h\n"
        return try #require(CampaignFile.source(text: text, path: "c.yaml").0)
    }

    @Test(
        arguments: [
            ("locale in (\"en\", \"pt\", \"pt-BR\", \"pt-BR-x\")", []), ("locale = \"it\"", ["it"]), ("everyone", []),
            ("not locale in (\"it\") and locale != \"fr\"", []), ("country = \"IT\"", []),
            ("(locale = \"nl\" or locale in (\"it\", \"nl\")) and tag(\"a\")", ["nl", "it"]),
            ("locale in (\"pt-PT\", \"zh\")", ["pt-PT", "zh"]),
        ] as [(String, [String])])
    func `a language asked for by name and not written is worth a warning`(audience: String, missing: [String]) throws {
        let campaign = try campaign(for: audience)
        let words = "default_locale: en\nalert: {en: {title: A}, pt-BR: {title: B}}"
        let isOfExactTag = { (diagnostic: Diagnostic) in diagnostic.what.contains("selects only devices") }
        let found = CampaignRules.check(campaign, try template(words)).filter { !isOfExactTag($0) }
        #expect(found.map(\.severity) == missing.map { _ in .warning })
        #expect(found.map(\.line) == missing.map { _ in 5 })
        for (diagnostic, tag) in zip(found, missing) { #expect(diagnostic.what.contains("\"\(tag)\"")) }
        #expect(CampaignRules.check(campaign, try template("alert: {loc_key: A}")).allSatisfy(isOfExactTag))
    }

    @Test(
        arguments: [
            ("locale = \"it\"", ["it"]), ("not (locale = \"nl\") or locale = \"fr\"", ["fr", "nl"]),
            ("locale = \"de-AT\"", []), ("locale in (\"it\")", []), ("locale != \"it\"", []),
        ] as [(String, [String])])
    func `a language that is compared by = is warned of, because it leaves out the regions`(
        audience: String, tags: [String]
    ) throws {
        let campaign = try campaign(for: audience)
        let found = CampaignRules.check(campaign, try template("alert: {loc_key: A}"))
        #expect(found.map(\.severity) == tags.map { _ in .warning })
        for (diagnostic, tag) in zip(found, tags) {
            #expect(diagnostic.what.hasPrefix("locale = \"\(tag)\" selects only devices"))
        }
    }

    @Test(arguments: [
        ("expires_after: 1h\npace: {rate: 100/s}\nguards: {max_reach: 360000}", true),
        ("expires_after: 1h\npace: {rate: 100/s}\nguards: {max_reach: 360001}", false),
        ("expires_after: 1h\npace: {rate: 100/s, ramp: 1m}\nguards: {max_reach: 360000}", false),
        ("expires_after: 0\npace: {rate: 1/m}\nguards: {max_reach: 360000}", true),
        ("expires_after: 1m\nguards: {max_reach: 360000}", true), ("expires_after: 1m\npace: {rate: 1/m}", true),
        ("expires_after: 1m\npace: {rate: 0.000001/m}\nguards: {max_reach: 9223372036854775807}", false),
    ])
    func `a run that outlives expires_after is worth a warning`(lines: String, isRight: Bool) throws {
        let text =
            "campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: words\n\(lines)\naudience: everyone\n"
        let campaign = try #require(CampaignFile.source(text: text, path: "c.yaml").0)
        let found = CampaignRules.check(campaign, try template("sound: default"))
        #expect(found.map(\.severity) == (isRight ? [] : [.warning]))
        #expect(found.allSatisfy { $0.line == 5 })
    }

    @Test(arguments: [
        ("alert", "", false), ("alert", "expires_after: 1h\n", true), ("alert", "expires_after: 0\n", true),
        ("background", "", true), ("voip", "", true),
    ])
    func `an alert that nobody forgets is worth a warning`(type: String, line: String, isRight: Bool) throws {
        let text =
            "campaign: spring\ntopic: com.example.a\npush_type: \(type)\ntemplate: words\n\(line)audience: everyone"
        let campaign = try #require(CampaignFile.source(text: text, path: "c.yaml").0)
        let found = CampaignRules.check(campaign, try template(type == "alert" ? "sound: default" : "custom: {a: 1}"))
        #expect(found.map(\.severity) == (isRight ? [] : [.warning]))
        #expect(found.allSatisfy { $0.line == 3 && $0.what.contains("30 days") })
        #expect(found.allSatisfy { $0.advice.contains("expires_after: 4h") })
    }

    @Test(arguments: [
        ("class: marketting\n", "alert", "did you mean \"marketing\"? the limited classes are marketing, news; "),
        ("class: zebra\n", "alert", "the limited classes are marketing, news; "), ("class: news\n", "alert", nil),
        ("", "alert", nil), ("class: zebra\n", "background", nil),
    ])
    func `a class that no frequency cap holds is worth a warning`(line: String, type: String, advice: String?) throws {
        let text =
            "campaign: spring\ntopic: com.example.a\n\(line)push_type: \(type)\ntemplate: words\naudience: everyone"
        let campaign = try #require(CampaignFile.source(text: text, path: "c.yaml").0)
        var configuration = Configuration(store: "s", campaigns: "c", templates: "t")
        var app = Configuration.App(topic: "com.example.a", credential: .key(teamID: "T", keyID: "K", path: "k.p8"))
        configuration.apps = [app]
        #expect(CapClassRules.check(campaign, configuration).isEmpty)
        app.frequencyCaps = [
            FrequencyCap(limit: 1, window: .seconds(3600), classes: ["news"]),
            FrequencyCap(limit: 3, window: .seconds(86_400), classes: ["news", "marketing"]),
        ]
        configuration.apps = [app]
        let found = CapClassRules.check(campaign, configuration)
        #expect(found.map(\.severity) == (advice == nil ? [] : [.warning]))
        #expect(found.allSatisfy { $0.line == 3 && $0.advice.hasPrefix(advice ?? "-") })
        configuration.apps[0].frequencyCaps.append(FrequencyCap(limit: 9, window: .seconds(86_400)))
        #expect(CapClassRules.check(campaign, configuration).isEmpty)
    }

    @Test(arguments: PushType.allCases) func `what needs a key cannot be sent with a certificate`(type: PushType) throws
    {
        let campaign = try campaign(type.rawValue)
        var configuration = Configuration(store: "s", campaigns: "c", templates: "t")
        #expect(CredentialRules.check(campaign, configuration).map(\.line) == [2])
        configuration.apps = [
            Configuration.App(
                topic: "com.example.a", credential: .certificate(certificatePath: "a.pem", privateKeyPath: nil))
        ]
        let needsKey = type == .location || type == .fileprovider
        #expect(CredentialRules.check(campaign, configuration).map(\.line) == (needsKey ? [3] : []))
        configuration.apps[0].credential = .key(teamID: "T", keyID: "K", path: "k.p8")
        #expect(CredentialRules.check(campaign, configuration).isEmpty)
    }
}
