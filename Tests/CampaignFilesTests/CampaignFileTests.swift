import CampaignFiles
import Model
import Testing

struct CampaignFileTests {
    /// Says everything but who gets it.
    static let bare = """
        campaign: spring
        topic: com.example.wendercast
        push_type: alert
        template: spring-words

        """
    static let head = bare + "audience: everyone\n"

    private func read(_ rest: String) throws -> Campaign {
        let head = rest.contains("audience:") ? Self.bare : Self.head
        let (campaign, diagnostics) = CampaignFile.read(text: head + rest, path: "spring.yaml")
        #expect(diagnostics.isEmpty)
        return try #require(campaign)
    }

    @Test func `the required keys and an audience are enough`() throws {
        var campaign = Campaign(
            name: "spring", topic: "com.example.wendercast", pushType: .alert, template: "spring-words")
        campaign.audience = Audience(source: "everyone", expression: .everyone)
        #expect(try read("") == campaign)
    }

    @Test(arguments: [
        ("", 1, "has no audience"), ("audience:\n", 5, "audience"), ("audience: \"\"\n", 5, "empty"),
        ("audience: \"  \"\n", 5, "empty"), ("audience: ()\n", 5, "condition"), ("audience: {}\n", 5, "audience"),
        ("audience: locale in ()\n", 5, "value"), ("audience: everyone and ()\n", 5, "condition"),
        ("audience: not\n", 5, "condition"), ("audience_sql: \"\"\n", 5, "audience_sql"),
        ("audience: \"*\"\n", 5, "*"), ("audience: all\n", 5, "all"), ("audience: true\n", 5, "condition"),
    ])
    func `nothing in place of an audience is everybody`(line: String, number: Int, word: String) {
        let (campaign, diagnostics) = CampaignFile.read(text: Self.bare + line, path: "a.yaml")
        #expect(campaign == nil)
        #expect(diagnostics.first?.line == number, "\(diagnostics)")
        #expect(diagnostics.contains { "\($0)".contains(word) }, "\(diagnostics)")
    }

    @Test func `everyone is a word of the language, alone and inside`() throws {
        #expect(try read("audience: Everyone\n").audience.expression == .everyone)
        #expect(
            try read("audience: everyone and not segment(\"x\")\n").audience.expression
                == .all([.everyone, .not(.segment("x"))]))
    }

    @Test func `every key arrives`() throws {
        let campaign = try read(
            """
            priority: 5
            class: news
            audience: segment("fans") and country = "DE"
            variables: {show: WenderCast, episode: 42, title: "", link: , old: no}
            expires_after: 1h30m
            collapse: spring-sale
            pace: {rate: 300/m, ramp: 2m}
            guards: {max_reach: 2_000_000, min_reach: 1, max_growth: 20%}
            on_unknown: skip
            retry: {max_attempts: 3}
            dedupe: user
            holdout: 2.5%
            variants: {a: {weight: 50, template: spring-words}, b: {weight: 25, template: short}}
            schedule: {cron: "0 9 * * MON-FRI", zone: recipient, unknown_zone: drop, late_by_max: 2h}
            """)
        #expect(campaign.priority == .considerate && campaign.pushClass == "news")
        #expect(campaign.audience.source == "segment(\"fans\") and country = \"DE\"")
        #expect(
            campaign.audience.expression
                == .all([.segment("fans"), .comparison(.country, .equal, .text("DE"))]))
        #expect(
            campaign.variables == ["show": "WenderCast", "episode": "42", "title": "", "link": "", "old": "no"])
        #expect(campaign.expiresAfter == .seconds(5400))
        #expect(campaign.collapse == .key("spring-sale"))
        #expect(campaign.pace == Campaign.Pace(pushesPerSecond: 5, ramp: .seconds(120)))
        #expect(campaign.guards == Campaign.Guards(maxReach: 2_000_000, minReach: 1, maxGrowthPercent: 20))
        #expect(campaign.holdoutPercent == 2.5 && campaign.dedupe == .user)
        #expect(
            campaign.variants == [
                Campaign.Variant(name: "a", weight: 50, template: "spring-words"),
                Campaign.Variant(name: "b", weight: 25, template: "short"),
            ])
        var schedule = Schedule(trigger: .cron("0 9 * * MON-FRI"))
        schedule.zone = .recipient
        schedule.unknownZone = .drop
        schedule.lateByMax = .seconds(7200)
        #expect(campaign.schedule == schedule)
        #expect(campaign.onUnknown == .skip)
        #expect(campaign.maxAttempts == 3)
    }

    @Test(
        arguments: [
            ("collapse: run", Campaign.Collapse.run), ("collapse: none", Campaign.Collapse.none), ("", .run),
            ("collapse: \"a b\"", nil), ("collapse: ü", nil),
            ("collapse: \(String(repeating: "x", count: 64))", .key(String(repeating: "x", count: 64))),
        ] as [(String, Campaign.Collapse?)])
    func `collapse is run, none or a key that a header can carry`(line: String, collapse: Campaign.Collapse?) {
        let (campaign, _) = CampaignFile.read(text: Self.head + line, path: "a.yaml")
        #expect(campaign?.collapse == collapse)
    }

    @Test(arguments: [("user", Campaign.Dedupe.user, ""), ("all", nil, ""), ("person", nil, "all, user")])
    func `dedupe is user or all, which is the same as no word`(word: String, dedupe: Campaign.Dedupe?, told: String) {
        let (campaign, diagnostics) = CampaignFile.read(text: Self.head + "dedupe: \(word)", path: "a.yaml")
        #expect(campaign?.dedupe == dedupe && diagnostics.isEmpty == told.isEmpty)
        #expect(diagnostics.allSatisfy { "\($0)".contains(told) })
    }

    @Test(
        arguments: [
            ("0", Duration.zero), ("90s", .seconds(90)), ("30d", .seconds(30 * 86_400)), ("\"4h\"", .seconds(14_400)),
            ("31d", nil), ("4", nil), ("four hours", nil), ("-1h", nil),
        ] as [(String, Duration?)])
    func `expires_after is a duration of at most thirty days`(text: String, duration: Duration?) {
        let (campaign, diagnostics) = CampaignFile.read(text: Self.head + "expires_after: \(text)", path: "a.yaml")
        #expect(campaign?.expiresAfter == duration)
        #expect(diagnostics.isEmpty == (duration != nil))
    }

    @Test(
        arguments: [
            ("5000/s", 5000.0), ("60/m", 1), ("1_000/s", 1000), ("0.5/s", 0.5), ("0/s", nil), ("5/h", nil),
            ("-1/s", nil),
        ] as [(String, Double?)])
    func `a rate is per second or per minute`(text: String, rate: Double?) {
        let (campaign, _) = CampaignFile.read(text: Self.head + "pace: {rate: \(text)}", path: "a.yaml")
        #expect(campaign?.pace?.pushesPerSecond == rate)
    }

    /// `ProviderProtocol` section 4: the type, its suffix, the priorities Apple takes, the one when none is written, and
    /// whether a push is kept for later by default.
    static let typeRows: [(type: String, suffix: String, priorities: [Int], usual: Int, isKept: Bool)] = [
        ("alert", "", [10, 5, 1], 10, true),
        ("background", "", [5], 5, true),
        ("location", ".location-query", [10, 5], 10, true),
        ("voip", ".voip", [10, 5, 1], 10, false),
        ("complication", ".complication", [10, 5, 1], 10, true),
        ("fileprovider", ".pushkit.fileprovider", [10, 5, 1], 10, true),
        ("mdm", "", [10, 5, 1], 10, true),
        ("liveactivity", ".push-type.liveactivity", [10, 5], 5, true),
        ("pushtotalk", ".voip-ptt", [10], 10, false),
        ("widgets", ".push-type.widgets", [10, 5, 1], 10, true),
        ("controls", ".push-type.controls", [10, 5, 1], 10, false),
    ]

    @Test(arguments: typeRows.indices) func `a push type has its suffix, priorities and expiry`(row: Int) throws {
        let row = Self.typeRows[row]
        let text = "campaign: a\ntopic: com.example.a\npush_type: \(row.type)\ntemplate: a\naudience: everyone\n"
        let campaign = try #require(CampaignFile.read(text: text, path: "a.yaml").0)
        #expect(campaign.pushType.rawValue == row.type)
        #expect(campaign.deviceTopic == "com.example.a" + row.suffix)
        #expect(campaign.priority.rawValue == row.usual)
        #expect(campaign.expiresAfter == (row.isKept ? nil : .zero))
        let usual: [String: Campaign.Collapse] = ["alert": .run, "background": .template]
        #expect(campaign.collapse == usual[row.type] ?? .none)
        for priority in [10, 5, 1] {
            let (campaign, diagnostics) = CampaignFile.read(text: "\(text)priority: \(priority)", path: "a.yaml")
            #expect((campaign != nil) == row.priorities.contains(priority))
            #expect(diagnostics.count == (row.priorities.contains(priority) ? 0 : 1))
        }
        let longer = CampaignFile.read(text: "\(text)expires_after: 1h", path: "a.yaml").0
        #expect(longer?.expiresAfter == .seconds(3600))
    }

    @Test func `every push type is known`() {
        #expect(Set(Self.typeRows.map(\.type)) == Set(PushType.allCases.map(\.rawValue)))
    }

    @Test(arguments: PushType.allCases.filter { !$0.topicSuffix.isEmpty })
    func `a topic with a push type's suffix is refused`(type: PushType) {
        let text =
            "campaign: a\ntopic: com.example.a\(type.topicSuffix)\npush_type: alert\ntemplate: a\naudience: everyone\n"
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(campaign == nil)
        #expect(diagnostics.first?.advice.contains("com.example.a)") == true)
    }

    @Test(arguments: [
        ("unknown_zone: Europe/Berlin", true), ("unknown_zone: drop", true), ("zone: Asia/Tokyo", true),
        ("zone: recipient", false), ("", false),
    ])
    func `quiet hours without a schedule need a word about devices without a zone`(key: String, isRight: Bool) throws {
        let hours = "quiet_hours: {from: 22:00, to: 08:00, policy: drop}"
        let line = "schedule: {\(key.isEmpty ? "" : key + ", ")\(hours)}"
        let (campaign, diagnostics) = CampaignFile.read(text: Self.head + line, path: "a.yaml")
        #expect(diagnostics.isEmpty == isRight)
        #expect(diagnostics.allSatisfy { $0.advice.contains("unknown_zone") })
        guard isRight else { return }
        let schedule = try #require(campaign?.schedule)
        #expect(schedule.trigger == .none)
        #expect(schedule.quietHours == .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: .drop))
    }

    @Test(arguments: [
        ("SELECT id FROM device_view", true), ("  select id from device_view ;  -- all of them\n", true),
        ("WITH x AS (SELECT 1 AS id) SELECT id FROM x", true), ("/* who */ SELECT 'it''s; (' AS id", true),
        ("SELECT [a;b] FROM \"c(d\"", true),
        ("SELECT 1; SELECT 2", false), ("SELECT 1;;", false), ("", false), ("-- nothing", false), (";", false),
        ("(SELECT 1)", false), ("PRAGMA user_version", false), ("UPDATE device SET id = 1", false),
        ("SELECT 'open", false), ("SELECT (1", false), ("SELECT 1)", false), ("SELECT /* open", false),
        ("SELECT [open", false),
    ])
    func `audience_sql is one SELECT by its form`(sql: String, isRight: Bool) {
        let lines = sql.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }
        let text = Self.bare + "audience_sql: |2\n" + lines.joined(separator: "\n") + "\n"
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect((campaign?.audienceSQL != nil) == isRight)
        #expect(diagnostics.allSatisfy { $0.what.hasPrefix("audience_sql: ") })
        #expect(diagnostics.isEmpty == isRight)
    }

    @Test(
        arguments: [
            (1000, nil, 100), (1000, 60, 127), (100, 60, 30.45), (0, 60, 0),
        ] as [(Int, Int64?, Double)])
    func `a run takes its reach over the rate, the ramp from a tenth included`(
        count: Int, ramp: Int64?, seconds: Double
    ) {
        let pace = Campaign.Pace(pushesPerSecond: 10, ramp: ramp.map { .seconds($0) })
        #expect(abs(pace.duration(of: count).inSeconds - seconds) < 0.02)
    }

    @Test(arguments: [
        ("0 9 * * MON-FRI", true), ("*/5 * * * *", true), ("0,30 8-18/2 1 jan,DEC 7", true), ("@daily", true),
        ("0 0 * * SAT-SUN", true), ("@reboot", false), ("0 9 * *", false), ("60 9 * * *", false), ("0 9 0 * *", false),
        ("0 9 * 13 *", false), ("5-1 * * * *", false), ("*/0 * * * *", false), ("a * * * *", false),
        ("1,, * * * *", false), ("+1 * * * *", false), ("1--2 * * * *", false),
    ])
    func `a cron expression has five fields in their limits`(cron: String, isRight: Bool) {
        let text = Self.head + "schedule: {cron: \"\(cron)\", zone: Europe/Berlin}"
        let (_, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.isEmpty == isRight)
    }

    @Test(arguments: ["everyone", "tag('staff') or everyone", "not everyone", "tag('a') and (everyone or tag('b'))"])
    func `seeds that name everyone are refused where they stand`(seeds: String) {
        let seeds = seeds.replacing("'", with: "\\\"")
        let text = Self.head + "stages:\n  - {seeds: \"\(seeds)\"}\n  - {rest: true}\n"
        let (_, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.map(\.what) == ["seeds select everyone, but a stage must limit a fault to a few devices"])
        #expect(diagnostics.first?.advice.contains("segment(\"staff\")") == true)
        let head = Self.head.split(separator: "\n").count
        #expect(diagnostics.map { [$0.line, $0.column] } == [[head + 2, 6]])
    }

    @Test func `a byte order mark and Windows line ends do no harm`() {
        let text = "\u{FEFF}" + Self.head.replacing("\n", with: "\r\n") + "colour: x"
        let (_, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.map { [$0.line, $0.column] } == [[6, 1]])
    }

    @Test func `a file nested a thousand deep is refused`() {
        let text = "variables: " + String(repeating: "[", count: 900) + String(repeating: "]", count: 900)
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(campaign == nil)
        #expect(diagnostics.contains { $0.what == "nested too deeply" })
    }

    @Test func `aliases that multiply are refused`() {
        var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...9 {
            let uses = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            text += "a\(level): &a\(level) [\(uses)]\n"
        }
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(campaign == nil)
        #expect(diagnostics.contains { $0.what.hasPrefix("more than") })
    }

    @Test func `the wrong file gives two hundred problems and no more`() {
        let text = (0..<5000).map { "k\($0): 1\n" }.joined()
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(campaign == nil)
        #expect(diagnostics.count == 201)
    }

    @Test func `random text is refused without a crash`() {
        var random = SeededGenerator(seed: 7)
        let pieces = [
            "campaign", ":", " ", "\n", "  ", "[", "]", "{", "}", "\"", "'", "- ", "|", ">", "&a", "*a", "#", "!!int ",
            "topic", "audience: locale", "{{", "}}", "\t", "é", "\u{F8FF}", "? ", ",", "a: 1", "a: 2", "%", "@", "\r\n",
        ]
        for _ in 0..<3000 {
            let text = (0..<Int.random(in: 1...40, using: &random))
                .compactMap { _ in pieces.randomElement(using: &random) }.joined()
            for prefix in ["", Self.head] {
                let (campaign, diagnostics) = CampaignFile.read(text: prefix + text, path: "a.yaml")
                #expect(campaign != nil || !diagnostics.isEmpty)
                let (template, others) = TemplateFile.read(text: "template: a\n" + text, path: "a.yaml")
                #expect(template != nil || !others.isEmpty)
            }
        }
    }
}
