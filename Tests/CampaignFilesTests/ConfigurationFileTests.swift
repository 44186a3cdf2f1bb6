import CampaignFiles
import Model
import Testing

struct ConfigurationFileTests {
    static let text = """
        store: /var/lib/fanfare/fanfare.sqlite
        campaigns: files/campaigns
        templates: /etc/fanfare/templates
        apps:
          - topic: com.example.wendercast
            team_id: DEF123GHIJ
            key_id: ABC123DEFG
            key_path: AuthKey_ABC123DEFG.p8
            connections: 8
            silent_budget: {limit: 2, window: 30m}
            frequency_caps:
              - {limit: 3, window: 24h, per: user, classes: [news, marketing], reserve: {news: 1}}
              - {limit: 10, window: 7d}
            endpoints: {production: "127.0.0.1:8443", sandbox: "[::1]:8444", trust: ca.pem}
          - {topic: com.example.other, certificate_path: c.p12}
        transport: curl
        http: {listen: "0.0.0.0:80"}
        retention: {outcomes: 90d}
        log: {format: json, level: error}
        volume_brake: {times: 10, max_growth: 50%}
        test_devices: staff
        webhooks:
          - {url: "https://example.com/hook", secret_path: keys/hook, events: [finished, missed]}
          - {url: "http://127.0.0.1:9/", secret_path: /run/hook}
        """

    private func read(_ text: String = text, _ environment: [String: String] = [:]) throws -> Configuration {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: text, path: "/etc/fanfare/fanfare.yaml", environment: environment)
        #expect(diagnostics.map(\.description) == [])
        return try #require(configuration)
    }

    /// A message is for one address. Two secrets would sign it in turn.
    @Test func `a second webhook with the same url is refused`() throws {
        let hooks = ["keys/a, events: [finished]", "keys/b, events: [failed]"].map {
            "{url: \"https://example.com/hook\", secret_path: \($0)}"
        }
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: "store: a\n\(Self.app)webhooks: [\(hooks.joined(separator: ", "))]\n", path: "f.yaml")
        #expect(configuration == nil)
        #expect(
            diagnostics.map(\.what) == ["two webhooks have the url \"https://example.com/hook\""], "\(diagnostics)")
    }

    @Test func `an installation may begin without an app, and is told so`() throws {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: "store: a.sqlite\napps: []\n", path: "/etc/fanfare/fanfare.yaml")
        #expect(try #require(configuration).apps == [])
        #expect(diagnostics.map(\.severity) == [.warning])
        #expect(diagnostics.map(\.description).joined().contains("nothing can be sent; add an app on the Setup page"))
    }

    @Test func `devices for tests have names, or are a segment`() throws {
        let named = Self.text.replacing(
            "test_devices: staff", with: "test_devices: {Anna’s phone: install-17, QA tablet: \"42\"}")
        let configuration = try read(named)
        #expect(configuration.testDevices == nil)
        #expect(configuration.namedTestDevices == ["Anna’s phone": "install-17", "QA tablet": "42"])
        for wrong in ["{a: }", "{\"\": b}", "[a]", "{a: [b]}"] {
            let text = Self.text.replacing("test_devices: staff", with: "test_devices: \(wrong)")
            let (found, diagnostics) = ConfigurationFile.read(text: text, path: "fanfare.yaml")
            #expect(found == nil && !diagnostics.isEmpty, "\(wrong)")
        }
    }

    @Test func `every key arrives, relative paths from the file's folder`() throws {
        let configuration = try read()
        #expect(configuration.store == "/var/lib/fanfare/fanfare.sqlite")
        #expect(configuration.campaigns == "/etc/fanfare/files/campaigns")
        #expect(configuration.templates == "/etc/fanfare/templates")
        #expect(configuration.http.listen == "0.0.0.0:80")
        #expect(configuration.retention.outcomes == .seconds(90 * 86_400))
        #expect(configuration.testDevices == "staff")
        #expect(configuration.log == Configuration.Log(format: .json, level: .error))
        #expect(configuration.volumeBrake == .init(times: 10, atLeast: 1000, maxGrowthPercent: 50))
        #expect(
            configuration.webhooks == [
                .init(
                    url: "https://example.com/hook", secretPath: "/etc/fanfare/keys/hook", events: [.finished, .missed]),
                .init(
                    url: "http://127.0.0.1:9/", secretPath: "/run/hook", events: Configuration.Webhook.Event.allCases),
            ])
        #expect(configuration.apps.map(\.transport) == [.curl, .curl])
        let app = try #require(configuration.apps.first)
        #expect(app.topic == "com.example.wendercast")
        #expect(
            app.credential
                == .key(teamID: "DEF123GHIJ", keyID: "ABC123DEFG", path: "/etc/fanfare/AuthKey_ABC123DEFG.p8"))
        #expect(app.connections == 8)
        #expect(
            app.frequencyCaps == [
                FrequencyCap(
                    limit: 3, window: .seconds(86_400), per: .user, classes: ["news", "marketing"], reserve: ["news": 1]
                ),
                FrequencyCap(limit: 10, window: .seconds(7 * 86_400)),
            ])
        #expect(app.silentBudget == Configuration.SilentBudget(limit: 2, window: .seconds(1800)))
        #expect(
            app.endpoints
                == Configuration.Endpoints(
                    production: "127.0.0.1:8443", sandbox: "[::1]:8444", trust: "/etc/fanfare/ca.pem"))
        #expect(
            configuration.apps.last?.credential
                == .certificate(certificatePath: "/etc/fanfare/c.p12", privateKeyPath: nil))
    }

    @Test func `an app may have a key for each environment, or for one of them`() throws {
        let configuration = try read(
            """
            store: a.sqlite
            apps:
              - topic: com.example.a
                team_id: DEF123GHIJ
                keys:
                  production: {key_id: ABC123DEFG, key_path: keys/a.p8}
                  sandbox: {key_id: GHI456JKLM, key_path: /b.p8}
              - {topic: com.example.b, team_id: DEF123GHIJ, keys: {sandbox: {key_id: GHI456JKLM, key_path: /b.p8}}}
            """)
        #expect(
            configuration.apps[0].credential
                == .keys(
                    teamID: "DEF123GHIJ",
                    [
                        .production: .init(id: "ABC123DEFG", path: "/etc/fanfare/keys/a.p8"),
                        .sandbox: .init(id: "GHI456JKLM", path: "/b.p8"),
                    ]))
        #expect(configuration.apps[0].credential.environments == [.production, .sandbox])
        #expect(configuration.apps[1].credential.environments == [.sandbox])
        #expect(configuration.apps[1].credential.name(in: .sandbox) == "key GHI456JKLM of team DEF123GHIJ")
        #expect(configuration.apps[1].credential.name(in: .production) == nil)
    }

    @Test func `a key of one environment comes from the environment's variables, too`() throws {
        let configuration = try read(
            "store: a.sqlite\napps: [{topic: com.example.a, team_id: DEF123GHIJ}]\n",
            [
                "FANFARE_APPS_0_KEYS_PRODUCTION_KEY_ID": "ABC123DEFG",
                "FANFARE_APPS_0_KEYS_PRODUCTION_KEY_PATH": "/a.p8",
            ])
        #expect(
            configuration.apps.first?.credential
                == .keys(teamID: "DEF123GHIJ", [.production: .init(id: "ABC123DEFG", path: "/a.p8")]))
    }

    @Test func `the password of a certificate is in a file beside it`() throws {
        let configuration = try read(
            """
            store: a.sqlite
            apps:
              - {topic: com.example.a, certificate_path: c.p12, certificate_password_path: keys/c.password}
            """)
        #expect(
            configuration.apps.first?.credential
                == .certificate(
                    certificatePath: "/etc/fanfare/c.p12", privateKeyPath: nil,
                    passwordPath: "/etc/fanfare/keys/c.password"))
        let (none, problems) = ConfigurationFile.read(
            text: "store: a\napps: [{topic: com.example.a, certificate_password_path: b}]", path: "f.yaml")
        #expect(none == nil)
        #expect(problems.first?.what == "certificate_password_path without certificate_path")
    }

    private static let app = "apps: [{topic: com.example.a, certificate_path: a.pem}]\n"

    @Test func `a store may be a database, whose URL is no path`() throws {
        let url = "postgres://u:p%40ss@db.example:5432/fan?sslmode=require"
        #expect(try read("store: \(url)\n\(Self.app)").store == url)
        #expect(try read("store: a.sqlite\n\(Self.app)", ["FANFARE_STORE": url]).store == url)
    }

    @Test(arguments: [
        ("mysql://u:hunter2@h/d", "does not begin with postgres://", "write postgres://user@host:5432/database"),
        ("postgres://u:hunter2@h", "names no database", "write postgres://user@host:5432/database"),
        ("postgres://u:hunter2@h/d?a=1", "unknown option", "known are host"),
    ])
    func `a URL that cannot be right is an error at its place, without what may be a password`(
        url: String, what: String, advice: String
    ) throws {
        for (text, environment) in [("store: \(url)\n", [:]), ("store: a\n", ["FANFARE_STORE": url])] {
            let (configuration, problems) = ConfigurationFile.read(
                text: text + Self.app, path: "f.yaml", environment: environment)
            #expect(configuration == nil && problems.count == 1)
            let problem = try #require(problems.first)
            #expect(problem.what.contains(what) && problem.advice.hasPrefix(advice), "\(problem)")
            #expect(!problem.description.contains("hunter2"))
            #expect(problem.description.hasPrefix(environment.isEmpty ? "f.yaml:1:8: error" : "FANFARE_STORE: error"))
        }
    }

    @Test func `who must sign a plan, and which accounts are one person's`() throws {
        let written =
            Self.text + """

                approvals:
                  rules: [{above: 100000, needs: 2}, {above: 1000, not_by_author: false, within: 2h, drift: 1%}]
                  ceiling: 5_000_000
                  break_glass: true
                  break_glass_by: [anna]
                people: {anna: ["os:anna", "git:anna@example.org"]}
                """
        let approvals = try #require(try read(written).approvals)
        #expect(
            approvals.rules == [
                .init(above: 100_000, needs: 2),
                .init(above: 1000, needs: 1, notByAuthor: false, within: .seconds(7200), driftPercent: 1),
            ])
        #expect(approvals.ceiling == 5_000_000 && approvals.breakGlass && approvals.breakGlassBy == ["anna"])
        let people = approvals.people.people(tokenNames: [:])
        #expect(people.person("git:anna@example.org") == "anna")
        #expect(people.person("os:ben") == "os:ben")
        #expect(try read().approvals == nil)
    }

    @Test(arguments: [
        ("anna: [\"token:#17\", \"token:anna-mac\"]", nil), ("anna: [\"token:#017\"]", "an account such as"),
        ("anna: [\"token:#\"]", "an account such as"), ("\u{E9}lise: [\"proxy:\u{E9}lise\"]", nil),
        ("elise: [\"proxy:e\u{301}lise\"]", "an account such as"),
        ("e\u{301}lise: [\"os:elise\"]", "combining accents"),
        ("anna: [\"os:x\"], ben: [\"os:x\"]", "is an account of anna and of ben"),
    ])
    func `an account is written in one way`(people: String, words: String?) {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: Self.text + "\napprovals: {rules: [{above: 1}]}\npeople: {\(people)}", path: "fanfare.yaml",
            environment: [:])
        #expect((configuration == nil) == (words != nil), "\(diagnostics)")
        guard let words else { return }
        #expect(diagnostics.contains { $0.description.contains(words) }, "\(diagnostics)")
    }

    @Test(arguments: [
        ("approvals: {rules: [{above: 1, needs: 2, not_by_author: false}]}", "needs: 2"),
        ("approvals: {rules: [{above: 1}]}", "not_by_author: true"),
        ("approvals: {rules: [{above: 1, not_by_author: false}]}", nil),
        ("approvals: {rules: [{above: 1}]}\npeople: {anna: [\"os:anna\"]}", nil),
    ])
    func `who tells people apart without saying whose an account is, is warned`(more: String, words: String?) {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: Self.text + "\n" + more, path: "fanfare.yaml", environment: [:])
        #expect(configuration != nil && diagnostics.count == (words == nil ? 0 : 1))
        guard let words, let warning = diagnostics.first else { return }
        #expect(warning.severity == .warning && warning.what.hasPrefix(words), "\(warning)")
        let place = warning.description.hasPrefix("fanfare.yaml:25:12: warning")
        #expect(place && warning.advice.contains("people:"), "\(warning)")
    }

    @Test(arguments: [
        ("approvals: {rules: [{above: 1}], break_glass_by: [anna]}", "break_glass_by without break_glass"),
        ("approvals: {ceiling: 5}", "rules"),
        ("people: {anna: [\"anna\"]}", "os:anna"),
        ("people: {anna: [\"os:a\"], ben: [\"os:a\"]}", "is an account of anna and of ben"),
        ("people: {anna: [\"git:a@x.org\"], ben: [\"git:A@X.org\"]}", "is an account of anna and of ben"),
    ])
    func `a rule that cannot be meant is refused`(more: String, words: String) {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: Self.text + "\n" + more, path: "fanfare.yaml", environment: [:])
        #expect(configuration == nil)
        #expect(diagnostics.contains { $0.description.contains(words) }, "\(diagnostics)")
    }

    @Test func `what is absent has a default`() throws {
        let configuration = try read("store: a.sqlite\napps: [{topic: com.example.a, certificate_path: a.pem}]\n")
        #expect(configuration.store == "/etc/fanfare/a.sqlite")
        #expect(configuration.campaigns == "/etc/fanfare/campaigns")
        #expect(configuration.templates == "/etc/fanfare/templates")
        #expect(configuration.http == Configuration.HTTP())
        #expect(configuration.log == Configuration.Log(format: nil, level: nil))
        #expect(configuration.apps.first?.connections == 4)
        #expect(configuration.apps.first?.transport == .native)
        #expect(configuration.apps.first?.silentBudget == Configuration.SilentBudget())
    }

    @Test func `the environment wins over the file for every scalar`() throws {
        let configuration = try read(
            Self.text,
            [
                "FANFARE_STORE": "local.sqlite", "FANFARE_CAMPAIGNS": "/c", "FANFARE_TEMPLATES": "/t",
                "FANFARE_HTTP_LISTEN": "127.0.0.1:9", "FANFARE_RETENTION_OUTCOMES": "10d",
                "FANFARE_TRANSPORT": "native", "FANFARE_LOG_FORMAT": "journal", "FANFARE_LOG_LEVEL": "debug",
                "FANFARE_APPS_0_TOPIC": "com.example.env", "FANFARE_APPS_0_TEAM_ID": "AAAAAAAAAA",
                "FANFARE_APPS_0_KEY_ID": "BBBBBBBBBB", "FANFARE_APPS_0_KEY_PATH": "/k.p8",
                "FANFARE_APPS_0_CONNECTIONS": "1", "FANFARE_APPS_0_SILENT_BUDGET_LIMIT": "1",
                "FANFARE_APPS_0_ENDPOINTS_PRODUCTION": "a:1", "FANFARE_APPS_1_PRIVATE_KEY_PATH": "/p.pem",
                "FANFARE_APPS_2_TOPIC": "com.example.third", "FANFARE_APPS_2_CERTIFICATE_PATH": "/third.pem",
                "FANFARE_CONFIG": "/elsewhere.yaml", "PATH": "/bin", "FANFARE_": "",
            ])
        #expect(configuration.store == "local.sqlite")
        #expect(configuration.campaigns == "/c")
        #expect(configuration.templates == "/t")
        #expect(configuration.http.listen == "127.0.0.1:9")
        #expect(configuration.retention.outcomes == .seconds(864_000))
        #expect(configuration.log == Configuration.Log(format: .journal, level: .debug))
        #expect(configuration.apps.map(\.transport) == [.native, .native, .native])
        let app = try #require(configuration.apps.first)
        #expect(app.topic == "com.example.env")
        #expect(app.credential == .key(teamID: "AAAAAAAAAA", keyID: "BBBBBBBBBB", path: "/k.p8"))
        #expect(app.connections == 1)
        #expect(app.silentBudget == Configuration.SilentBudget(limit: 1, window: .seconds(1800)))
        #expect(app.endpoints.production == "a:1")
        #expect(app.endpoints.sandbox == "[::1]:8444")
        #expect(configuration.apps.map(\.topic) == ["com.example.env", "com.example.other", "com.example.third"])
        #expect(
            configuration.apps[1].credential
                == .certificate(certificatePath: "/etc/fanfare/c.p12", privateKeyPath: "/p.pem"))
    }

    @Test func `an empty file is enough when the environment says everything`() throws {
        let configuration = try read(
            "",
            [
                "FANFARE_STORE": "/s", "FANFARE_APPS_0_TOPIC": "com.example.a",
                "FANFARE_APPS_0_CERTIFICATE_PATH": "/a.pem",
            ])
        #expect(configuration.apps.count == 1)
    }

    @Test func `a wrong variable is named in place of the file`() {
        let (configuration, diagnostics) = ConfigurationFile.read(
            text: Self.text, path: "f.yaml",
            environment: ["FANFARE_HTTP_LISTEN": "nowhere", "FANFARE_STROE": "x"])
        #expect(configuration == nil)
        #expect(
            diagnostics.map(\.description).sorted() == [
                "FANFARE_HTTP_LISTEN: error: \"listen\": expected host:port, found \"nowhere\"; "
                    + "write for example \"127.0.0.1:8787\"",
                "FANFARE_STROE: warning: this environment variable does not name a configuration key; "
                    + "did you mean FANFARE_STORE?",
            ])
    }
}

/// Variables of one app.
struct AppVariableTests {
    @Test(arguments: [
        ("FANFARE_APPS_0_TOPCI", "did you mean FANFARE_APPS_0_TOPIC?"),
        ("FANFARE_APPS_0_ZZZZZZZZZZ", "FANFARE_APPS_0_KEY_PATH, FANFARE_APPS_0_KEYS_..., "),
        ("FANFARE_ZZZZZZZZZZZ", "FANFARE_APPS_0_KEY_PATH and the other keys of an app"),
    ])
    func `a wrong variable names those that there are`(name: String, words: String) {
        let text = """
            store: s
            campaigns: c
            templates: t
            apps:
              - {topic: com.example.a, team_id: AAAAAAAAAA, key_id: BBBBBBBBBB, key_path: k.p8}
            """
        let (_, diagnostics) = ConfigurationFile.read(text: text, path: "f.yaml", environment: [name: "x"])
        let said = diagnostics.map(\.description)
        #expect(said.contains { $0.hasPrefix("\(name): warning") && $0.contains(words) }, "\(said)")
    }
}

/// The declared shapes are what a schema is made from: each key must say what it means.
struct ShapeTests {
    @Test(arguments: [CampaignKeys.shape, TemplateKeys.shape, ConfigurationKeys.shape])
    func `every declared key has words for its value and a sentence`(shape: ObjectShape) {
        var pending = [shape]
        var seen = 0
        while let shape = pending.popLast() {
            for key in shape.keys {
                seen += 1
                #expect(key.doc.hasSuffix("."), "\(shape.name).\(key.name)")
                #expect(!key.value.summary.isEmpty)
                if case .object(let inner) = key.value { pending.append(inner) }
            }
        }
        #expect(seen > 5)
    }
}
