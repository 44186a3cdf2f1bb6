import Campaigns
import Foundation
import Model
import TestSupport
import Testing

/// What `validate` and the catalogue say of several files at once.
struct CheckFilesTests {
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        _ = try folder.write("template: long\nsound: default\n", to: "templates/long.yaml")
    }

    private static func campaign(_ name: String, _ lines: String = "", type: String = "alert") -> String {
        "# A comment\ncampaign: \(name)\ntopic: com.example.a\npush_type: \(type)\ntemplate: long\nexpires_after: 1h\n"
            + "\(lines.contains("audiance") ? "" : "audience: everyone\n")\(lines)"
    }

    private func configuration(_ campaigns: String = "campaigns") -> Configuration {
        Configuration(
            store: "s", campaigns: "\(folder.path)/\(campaigns)", templates: "\(folder.path)/templates", apps: [])
    }

    private func check(_ names: String..., configuration: Configuration? = nil) throws -> CheckFiles.Checked {
        try CheckFiles(
            configuration: configuration, templates: "\(folder.path)/templates", configuredTemplates: { "" },
            environment: [:]
        ).check(names.map { "\(folder.path)/\($0)" })
    }

    private func messages(_ checked: CheckFiles.Checked) -> [String] {
        checked.diagnostics.filter { $0.severity == .error }
            .map { $0.description.replacing("\(folder.path)/", with: "") }
    }

    private static let shared = [
        "campaigns/copy.yaml:2:1: error: campaigns/spring.yaml is also called \"spring\"; that file is used; this one "
            + "is ignored; give one of the two another name",
        "campaigns/spring.yaml:2:1: error: campaigns/copy.yaml is also called \"spring\"; this file is used; "
            + "that one is ignored; give one of the two another name",
    ]

    @Test func `what is in the campaigns' folder is a campaign, whatever it looks like`() throws {
        _ = try folder.write("template: long\nsound: default\n", to: "campaigns/pasted.yaml")
        #expect(messages(try check("campaigns", configuration: configuration())).contains { $0.contains("campaign") })
        #expect(messages(try check("campaigns")) == [])
    }

    @Test func `two files with one campaign's name are errors at its line, each naming the other`() throws {
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/copy.yaml")
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        let checked = try check("campaigns")
        #expect(messages(checked) == Self.shared)
        #expect(checked.result.files.map(\.ok) == [false, false])
        // The same file under two spellings of its path is one file.
        #expect(messages(try check("campaigns", "campaigns/../campaigns/copy.yaml")).count == 2)
    }

    @Test(
        arguments: [
            "\u{FEFF}campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: long\naudience: everyone\nexpires_after: 1h\n",
            "template: long\ncampaign: spring\naudience: everyone\ntopic: com.example.a\npush_type: alert\nexpires_after: 1h\n",
            "\"template\": long\n'campaign' : spring\naudience: everyone\ntopic: com.example.a\npush_type: alert\nexpires_after: 1h\n",
            "{campaign: spring, topic: com.example.a, push_type: alert, template: long, audience: everyone, expires_after: 1h}\n",
        ])
    func `a campaign is one whatever the order of its keys and however they are written`(text: String) throws {
        _ = try folder.write(text, to: "push-templates/campaigns/spring.yaml")
        let checked = try check("push-templates/campaigns/spring.yaml")
        #expect(checked.diagnostics.map(\.description) == [])
        #expect(checked.result.files.first?.payloadMaxBytes.isEmpty == false)
    }

    @Test func `a campaign without its name is still one`() throws {
        _ = try folder.write("template: long\ntopic: com.example.a\npush_type: alert\n", to: "campaigns/spring.yaml")
        #expect(messages(try check("campaigns")).contains { $0.contains(#""campaign" is missing"#) })
    }

    @Test func `a file with other errors still shares its name`() throws {
        _ = try folder.write(Self.campaign("spring", "audiance: everyone\n"), to: "campaigns/copy.yaml")
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        #expect(messages(try check("campaigns")).filter { $0.contains(" is also called ") } == Self.shared)
    }

    @Test func `one file alone is compared with its neighbours in the configured folder`() throws {
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/copy.yaml")
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        var configuration = Configuration(
            store: "s", campaigns: "\(folder.path)/campaigns", templates: "\(folder.path)/templates")
        configuration.apps = [
            .init(topic: "com.example.a", credential: .key(teamID: "T", keyID: "K", path: "k.p8"))
        ]
        #expect(messages(try check("campaigns/copy.yaml", configuration: configuration)) == [Self.shared[0]])
    }

    @Test func `the schedule drops the copy, never the file that is called like the campaign`() throws {
        _ = try folder.write(Self.campaign("spring", "pace: {rate: 1/s}\n"), to: "campaigns/copy.yaml")
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration("campaigns/"))
        #expect(catalogue.ready.map(\.campaign.pace?.pushesPerSecond) == [nil])
        let said = catalogue.problems.flatMap(\.diagnostics).map {
            $0.description.replacing("\(folder.path)/", with: "")
        }
        #expect(said == [Self.shared[0]])
    }

    @Test func `a wrong priority of a background push does not hide what its template shows`() throws {
        _ = try folder.write(
            Self.campaign("spring", "priority: 10\n", type: "background"), to: "campaigns/spring.yaml")
        let found = messages(try check("campaigns"))
        #expect(found.count == 2)
        #expect(found.contains { $0.hasPrefix("campaigns/spring.yaml:8:") && $0.contains("priority 10") })
        #expect(found.contains { $0.hasPrefix("templates/long.yaml:2:1: error: \"sound\"") })
    }

    @Test func `an unknown key does not hide a missing template`() throws {
        _ = try folder.write(
            Self.campaign("spring", "audiance: everyone\n").replacing("long", with: "none"),
            to: "campaigns/spring.yaml")
        let found = messages(try check("campaigns"))
        #expect(found.count == 2)
        #expect(found.contains { $0.contains("unknown key \"audiance\"") })
        #expect(found.contains { $0.hasPrefix("campaigns/spring.yaml:5:1: error: template \"none\"") })
    }

    @Test func `an unknown key of the template hides neither its visible keys nor the campaign's missing variable`()
        throws
    {
        _ = try folder.write(
            "template: long\nsond: default\nbadge: 1\ncustom: {a: \"{{titel}}\"}\n", to: "templates/long.yaml")
        _ = try folder.write(
            Self.campaign("spring", "variables: {title: x}\n", type: "background"), to: "campaigns/spring.yaml")
        let found = messages(try check("campaigns"))
        #expect(
            found.map { $0.prefix { $0 != ";" } } == [
                "templates/long.yaml:2:1: error: template: unknown key \"sond\"",
                "templates/long.yaml:3:1: error: \"badge\" in the template of a background push",
                "templates/long.yaml:4:14: error: campaign \"spring\" has no variable \"titel\"",
            ])
    }

    @Test(arguments: [
        ("varaibles: {title: x}\n", "title: \"{{title}}\"", 1), ("push_tipe: alert\n", "badge: 1", 1),
        ("variables: {title: [1]}\n", "title: \"{{title}}\"", 1),
    ])
    func `a mistake is one error, not one for everything that depends on it`(
        line: String, text: String, count: Int
    ) throws {
        let words = text.hasPrefix("title") ? "alert: {en: {\(text)}}" : text
        _ = try folder.write("template: long\n\(words)\n", to: "templates/long.yaml")
        var campaign = Self.campaign("spring", line)
        if line.hasPrefix("push_tipe") { campaign = campaign.replacing("push_type: alert\n", with: "") }
        _ = try folder.write(campaign, to: "campaigns/spring.yaml")
        let found = messages(try check("campaigns"))
        #expect(found.count == count, "\(found)")
    }

    @Test(arguments: ["", "lint: {allow: [short-text]}\n", "lint: {allow: [short-text, test-words]}\n"])
    func `a slip in a text is a warning at its line, unless the template allows it`(allowed: String) throws {
        _ = try folder.write(
            "template: long\nalert:\n  en: {title: \"1\", body: Test wiadomości}\n" + allowed, to: "templates/long.yaml"
        )
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        let all = [
            (3, 15, #"the title in en is "1": 1 letter; under 3 letters is usually a mistake [short-text]"#),
            (
                3, 26,
                #"the body in en says "Test wiadomości", which looks like a test; "#
                    + "write the final text, or send it with `fanfare test-send` [test-words]"
            ),
        ]
        let expected = all.filter { !allowed.contains($0.2.suffix(12).dropFirst().dropLast()) }
            .map { "templates/long.yaml:\($0.0):\($0.1): warning: \($0.2)" }
        for path in ["campaigns", "templates/long.yaml"] {
            let checked = try check(path)
            #expect(checked.diagnostics.map { $0.description.replacing("\(folder.path)/", with: "") } == expected)
            #expect(!checked.hasErrors && checked.isClean == expected.isEmpty)
            #expect(checked.result.problems.compactMap(\.rule).count == expected.count)
        }
    }

    @Test func `a value that is missing for good, and one that the campaign gives, are looked at with the texts`()
        throws
    {
        _ = try folder.write(
            "template: long\nalert: {en: {title: \"{{a}}\", body: \"About {{b}}\"}}\n", to: "templates/long.yaml")
        let lines = "variables: {a: \"!\", b: \"\"}\nschedule: {cron: \"0 9 * * *\", zone: UTC}\n"
        _ = try folder.write(Self.campaign("spring", lines), to: "campaigns/spring.yaml")
        let found = try check("campaigns").diagnostics
        #expect(found.map(\.rule) == [.shortText, .neverFilled])
        #expect(found.map(\.line) == [2, 8])
        #expect(found.map(\.severity) == [.warning, .error])
        #expect(try check("templates/long.yaml").isClean)
    }

    private static let daily = "schedule: {cron: \"0 9 * * *\", zone: UTC}\n"
    private static let item =
        "trigger: {feed: \"https://example.org/feed.xml\", every: 15m, variables: {b: item.title}}\n"

    @Test(
        arguments: [
            ("variables: {b: \"\"}\n" + daily, 1), ("variables: {b: \"  \"}\n" + daily, 1),
            ("variables: {b: x}\n" + daily, 0), ("variables: {b: \"\"}\n", 0), ("variables: {b: \"\"}\n" + item, 0),
            (
                "variables: {b: \"\"}\nschedule: {zone: UTC, quiet_hours: {from: \"22:00\", to: \"07:00\", policy: defer}}\n",
                0
            ),
            ("variables: {b: \"\"}\nschedule: {at: 2030-01-01T00:00, zone: UTC}\n", 1),
            // Its only start is over and had its run, by a person who gave the value.
            ("variables: {b: \"\"}\nschedule: {at: 2020-01-01T00:00, zone: UTC}\n", 0),
        ])
    func `a schedule that leaves a variable without a value is an error, and a person may still start it`(
        lines: String, errors: Int
    ) throws {
        _ = try folder.write(
            "template: long\nalert: {en: {title: Hello, body: \"About {{b}} of today\"}}\n", to: "templates/long.yaml")
        _ = try folder.write(Self.campaign("spring", lines), to: "campaigns/spring.yaml")
        let files = CheckFiles(
            configuration: nil, templates: "\(folder.path)/templates", configuredTemplates: { "" }, environment: [:],
            now: Timestamp(seconds: 1_800_000_000), hasRun: { _, _ in true })
        let found = try files.check(["\(folder.path)/campaigns"]).diagnostics.filter { $0.severity == .error }
        #expect(found.count == errors, "\(found)")
        #expect(found.allSatisfy { $0.what.contains("{{b}} has no value") && $0.rule == .neverFilled })
        let check = CampaignCheck.check(
            path: "\(folder.path)/campaigns/spring.yaml", templatesFolder: "\(folder.path)/templates",
            usualFeedback: [:])
        #expect(check.isRight, "\(check.diagnostics)")
    }

    @Test func `an error of one scheduled campaign stops no other, and none that was loaded`() throws {
        _ = try folder.write(
            "template: long\nalert: {en: {title: Hello, body: \"About {{b}} of today\"}}\n", to: "templates/long.yaml")
        for (name, value) in [("empty", "\"\""), ("full", "x")] {
            _ = try folder.write(
                Self.campaign(name, "variables: {b: \(value)}\n" + Self.daily), to: "campaigns/\(name).yaml")
        }
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration())
        #expect(catalogue.ready.map(\.campaign.name) == ["empty", "full"] && catalogue.problems.isEmpty)
        var coming = try ListSchedule(campaigns: catalogue.ready, zone: .gmt)
            .coming([], count: 2, on: nil, now: Timestamp(seconds: 1_800_000_000))
        let failure = "will fail: no value for b"
        #expect(coming.result.occurrences.map(\.failure) == [failure, nil, failure, nil])
        coming.values = Self.given(["b": "The Reef", "gone": "x"], to: [coming.entries[0].occurrence.key])
        #expect(coming.result.occurrences.map(\.failure) == [nil, nil, failure, nil])
        #expect(coming.result.occurrences.map(\.values) == [["b": "The Reef"], nil, nil, nil])
    }

    private static func given(_ values: [String: String], to keys: [String]) -> StartValues {
        let now = Timestamp(seconds: 1_800_000_000)
        let found = keys.map { key in
            OccurrenceValues(
                campaign: "empty", occurrence: key, startsAt: now, variables: values, givenAt: now, givenBy: "anna",
                giver: "os:anna")
        }
        return StartValues(found, after: now)
    }

    @Test(
        arguments: [
            ([], .error, "{{b}} has no value when the schedule starts the campaign"),
            (["2027-01-16T09:00"], .error, "{{b}} has no value when the schedule starts the campaign"),
            (
                ["2027-01-15T09:00"], .warning,
                "the next start, Fri 15 Jan 09:00, has its values; the one after, Sat 16 Jan 09:00, has no value for b"
            ),
            (["2027-01-15T09:00", "2027-01-16T09:00"], nil, ""),
        ] as [([String], Diagnostic.Severity?, String)])
    func `a start with its own values is no error, and the next one without them a warning`(
        keys: [String], severity: Diagnostic.Severity?, what: String
    ) throws {
        _ = try folder.write(
            "template: long\nalert: {en: {title: Hello, body: \"About {{b}} of today\"}}\n", to: "templates/long.yaml")
        _ = try folder.write(
            Self.campaign("empty", "variables: {b: \"\"}\n" + Self.daily), to: "campaigns/empty.yaml")
        let now = Timestamp(seconds: 1_800_000_000)
        let files = CheckFiles(
            configuration: nil, templates: "\(folder.path)/templates", configuredTemplates: { "" }, environment: [:],
            now: now, values: Self.given(["b": "x"], to: keys))
        let diagnostics = try files.check(["\(folder.path)/campaigns"]).diagnostics.filter { $0.rule == .neverFilled }
        #expect(diagnostics.map(\.severity) == (severity.map { [$0] } ?? []), "\(diagnostics)")
        #expect(diagnostics.first?.what.hasPrefix(what) ?? what.isEmpty, "\(diagnostics)")
    }

    @Test func `rules that nobody knows are errors`() throws {
        _ = try folder.write("template: long\nsound: a\nlint: {allow: [shorttext]}\n", to: "templates/long.yaml")
        #expect(messages(try check("templates/long.yaml")).first?.contains("short-text") == true)
    }

    @Test func `links are named once, and a dead one is a warning where it stands`() throws {
        _ = try folder.write(
            "template: long\nsound: a\ncustom: {a: \"https://example.com/{{id}}\", b: \"https://example.com/7\"}\n",
            to: "templates/long.yaml")
        _ = try folder.write(Self.campaign("spring", "variables: {id: \"7\"}\n"), to: "campaigns/spring.yaml")
        var checked = try check("campaigns")
        #expect(checked.links == ["https://example.com/7"])
        checked.add(dead: ["https://example.com/7": "status 404"])
        #expect(checked.diagnostics.map(\.line) == [3])
        #expect(checked.diagnostics.first?.description.hasSuffix("[dead-link]") == true)
        #expect(checked.diagnostics.first?.what.contains("status 404") == true)
    }

    @Test func `a payload that is too large is said beside an unknown key`() throws {
        let body = String(repeating: "x", count: 5000)
        _ = try folder.write("template: long\nalert: {en: {body: \(body)}}\n", to: "templates/long.yaml")
        _ = try folder.write(Self.campaign("spring", "audiance: everyone\n"), to: "campaigns/spring.yaml")
        let found = messages(try check("campaigns"))
        #expect(found.contains { $0.contains("unknown key") } && found.contains { $0.contains("Apple accepts 4096") })
    }

    @Test func `a start in the past is an error, unless it had its run`() throws {
        let schedule = "schedule: {at: 2020-01-01T00:00, zone: Europe/Berlin}\n"
        _ = try folder.write(Self.campaign("spring", schedule), to: "campaigns/spring.yaml")
        func checked(at seconds: Int64, hasRun: Bool = false) throws -> CheckFiles.Checked {
            try CheckFiles(
                configuration: nil, templates: "\(folder.path)/templates", configuredTemplates: { "" },
                environment: [:], now: Timestamp(seconds: seconds),
                hasRun: { name, occurrence in hasRun && name == "spring" && occurrence == "2020-01-01T00:00" }
            ).check(["\(folder.path)/campaigns"])
        }
        func found(at seconds: Int64, hasRun: Bool = false) throws -> [String] {
            messages(try checked(at: seconds, hasRun: hasRun))
        }
        // 2019-12-31T23:00:00Z, and an hour in which it is late and still sent.
        let start: Int64 = 1_577_833_200
        #expect(try found(at: start - 1) == [])
        #expect(try found(at: start + 3600) == [])
        let due = try checked(at: start + 3600).diagnostics
        #expect(due.map(\.severity) == [.warning])
        #expect(due.first?.what == "schedule: its only start, 2020-01-01 00:00 Europe/Berlin, is due now")
        #expect(try checked(at: start - 1).diagnostics.isEmpty)
        #expect(try checked(at: start, hasRun: true).diagnostics.isEmpty)
        let late = try found(at: start + 3601)
        #expect(late.count == 1)
        #expect(late.first?.contains("its only start, 2020-01-01 00:00 Europe/Berlin, is over") == true)
        #expect(try found(at: start + 3601, hasRun: true) == [])
        #expect(messages(try check("campaigns")) == [])
    }

    @Test func `the languages of the app's devices that get the default text are named`() throws {
        let alert =
            "template: long\ndefault_locale: en\nalert: {en: {title: News}, de: {title: Neues}, zh-TW: {title: 新聞}}\n"
        _ = try folder.write(alert, to: "templates/long.yaml")
        _ = try folder.write(Self.campaign("spring"), to: "campaigns/spring.yaml")
        _ = try folder.write(
            Self.campaign("narrow").replacing("audience: everyone", with: "audience: 'not locale in (\"ko\")'"),
            to: "campaigns/narrow.yaml")
        var checked = try check("campaigns")
        checked.add(languages: ["com.example.a": ["de-AT": 9, "ja": 3, "ko": 5, "zh-HK": 7, "en": 1]])
        let named = checked.result.files.reduce(into: [String: [String]]()) { names, file in
            names[file.path.replacing("\(folder.path)/", with: "")] = file.fallbackLanguages
        }
        #expect(named["campaigns/spring.yaml"] == ["ko", "ja"])
        #expect(named["campaigns/narrow.yaml"] == ["ja"])
        #expect(checked.checks.allSatisfy { $0.fallbacks == ["en"] })
    }

    @Test func `no file is called ok in which the same call found an error`() throws {
        _ = try folder.write(Self.campaign("spring", type: "background"), to: "campaigns/spring.yaml")
        let checked = try check("campaigns", "templates/../templates")
        #expect(messages(checked).map { $0.prefix(20) } == ["templates/long.yaml:"])
        #expect(checked.checks.filter(\.isRight).isEmpty)
        #expect(checked.result.files.allSatisfy { !$0.ok })
        #expect(checked.diagnostics.count == 1)
    }
}
