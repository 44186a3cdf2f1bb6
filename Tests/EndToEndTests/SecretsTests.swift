import APNs
import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

@testable import fanfare

/// Everything that a day's work leaves behind and says, searched for what is nobody's business.
@Suite(.ownThread, .timeLimit(.minutes(5))) struct `Secrets` {
    @Test func `stay where they belong: nothing said and nothing left behind shows one`() async throws {
        try await OwnThread.run {
            let day = try Day()
            try day.work()
            try day.expectNoSecrets()
        }
    }

    private static let token = String(repeating: "ab", count: 28) + "00c0ffee"
    private static let jwt =
        "eyJhbGciOiJFUzI1NiIsImtpZCI6IlRFU1RLRVkwMDEifQ"
        + ".eyJpc3MiOiJURVNUVEVBTTAxIiwiaWF0IjoxNzgwMDAwMDAwfQ"

    @Test(
        arguments: [
            (["explain", token], "explain …00c0ffee"),
            (["test-send", "c", "--device=\(token)"], "test-send c --device=…00c0ffee"),
            (["explain", "<\(token.prefix(32)) \(token.suffix(32))>"], "explain …00c0ffee"),
            (["explain", token.uppercased()], "explain …00C0FFEE"),
            (["run", "c", "--var", "id=\(token)"], "run c --var id=…00c0ffee"),
            (["run", "c", "--var", "key=\(jwt)"], "run c --var key=…kwMDEifQ.…AwMDAwfQ"),
            (["run", "c", "--var", "password=hunter2"], "run c --var password=…"),
            (["run", "c", "--api-key", "hunter2"], "run c --api-key …"),
            (
                ["run", "c", "--var", "link=https://ray:pw@example.com/a?b=1&access_token=hunter2"],
                "run c --var 'link=https://…@example.com/a?b=1&access_token=…'"
            ),
            (["verify", "--store", "postgres://ann:hun/ter?2@h/d"], "verify --store postgres://…@h/d"),
            (
                ["verify", "--store=postgres://ann:hunter2@h/d?password=hunter2"],
                "verify '--store=postgres://…@h/d?password=…'"
            ),
            (
                ["move", "--to", "postgres://fanfare@db/fanfare?password=c2VjcmV0cHc="],
                "move --to 'postgres://…@db/fanfare?password=…'"
            ),
            (
                ["move", "--to=postgres://fanfare@db/fanfare?sslmode=require&password=ab=cd&connect_timeout=9"],
                "move '--to=postgres://…@db/fanfare?sslmode=require&password=…&connect_timeout=9'"
            ),
            (["run", "c", "--var", "password=ab=cd&ef=?gh", "--var", "a=b=c"], "run c --var password=… --var a=b=c"),
            (
                [
                    "run", "c", "--occurrence", "2026-12-01T09:00", "--plan",
                    "p2-0a1b2c3d-0a1b2c3d-0a1b2c3d-0a1b2c3d4e5f6071-2000000",
                ],
                "run c --occurrence 2026-12-01T09:00 --plan p2-0a1b2c3d-0a1b2c3d-0a1b2c3d-0a1b2c3d4e5f6071-2000000"
            ),
            (
                [
                    "run", "c", "--config", "/etc/fanfare/Production2/wendercast/fanfare.yaml", "--var",
                    "title=The Way Home",
                ],
                "run c --config /etc/fanfare/Production2/wendercast/fanfare.yaml --var 'title=The Way Home'"
            ),
        ] as [([String], String)])
    func `of a command line do not go on record`(words: [String], recorded: String) {
        #expect(RecordedCommand.text(words) == recorded)
    }
}

/// One installation, through all commands that touch a secret.
private final class Day {
    private static let webhookSecret = "5ec7e7beefcafe015ec7e7beefcafe015ec7e7beefcafe015ec7e7beefcafe01"
    /// Of no device; typed by somebody.
    private static let strangeToken = String(repeating: "d", count: 63) + "1"

    private let place: Installation
    private let hooks: LocalServer
    private var said: [(what: String, text: String)] = []
    /// Files with secrets in them that a person wrote, or asked for by name.
    private var exempt: Set<String> = []

    init() throws {
        hooks = try LocalServer { _ in .init(204) }
        place = try Installation(devices: 30)
        try place.folder.write(Self.webhookSecret + "\n", to: "hook.secret")
        try place.folder.write(try SigningKey.generatedPEM(), to: "other.p8")
        try configure()
        try place.folder.write(
            """
            token,environment,topic
            \(place.tokens[0]),nowhere,\(Installation.topic)
            \(place.tokens[1])zz,production,\(Installation.topic)
            production,\(place.tokens[2]),\(Installation.topic),,,,,

            """, to: "bad.csv")
        try place.folder.write("installation_id\n" + (0..<30).map { "install-\($0)\n" }.joined(), to: "fans.csv")
        exempt = Set(try FileManager.default.subpathsOfDirectory(atPath: place.folder.path))
    }

    private func configure(keyPath: String = "key.p8") throws {
        try place.configure(
            keyPath: keyPath, more: "webhooks: [{url: \"\(hooks.url)/hook?key=x\", secret_path: hook.secret}]")
    }

    private func fanfare(_ arguments: [String], isExport: Bool = false) throws {
        let result = try Program.run(arguments, in: place.folder)
        let name = arguments.joined(separator: " ")
        said.append(("errors of \(name)", result.errors))
        if !isExport { said.append(("output of \(name)", result.output)) }
    }

    func work() throws {
        try prepare()
        try send()
        try refuse()
        try ask()
        try serve()
    }

    private func prepare() throws {
        try fanfare(["devices", "import", "devices.csv"])
        try fanfare(["devices", "import", "bad.csv"])
        try fanfare(["segments", "import", "podcast-fans", "fans.csv"])
        try fanfare(["segments", "import", "by-token", "devices.csv"])
        try fanfare(["validate"])
        try fanfare(["plan", "new-podcast"] + Installation.words)
        for text in [place.tokens[4], Self.strangeToken] {
            try fanfare(["render", "new-podcast", "--device", text] + Installation.words)
            try fanfare(["test-send", "new-podcast", "--device", text, "--json"] + Installation.words)
        }
    }

    private func send() throws {
        place.simulator.setFaults([
            FaultRule(when: .number(3), action: .answer(status: 410, reason: "Unregistered", timestamp: 1 << 43)),
            FaultRule(when: .number(5), action: .answer(status: 400, reason: "BadDeviceToken", timestamp: nil)),
            FaultRule(when: .number(7), action: .answer(status: 400, reason: "SomethingNew", timestamp: nil)),
        ])
        try fanfare(
            ["run", "new-podcast", "--occurrence", "a", "--yes", "--log-level", "debug", "--log-format", "json"]
                + Installation.words)
        place.simulator.setFaults([])
    }

    /// With a key that APNs does not know, and with none.
    private func refuse() throws {
        for keyPath in ["other.p8", "hook.secret", "nowhere.p8"] {
            try configure(keyPath: keyPath)
            try fanfare(["run", "new-podcast", "--occurrence", keyPath, "--yes"] + Installation.words)
        }
        try fanfare(["cancel", "new-podcast/other.p8", "--reason", "see \(place.tokens[7])"])
        try configure()
    }

    private func ask() throws {
        for text in [place.tokens[8], Self.strangeToken] {
            try fanfare(["explain", text])
            try fanfare(["explain", text, "--json"])
            try fanfare(["devices", "show", text])
            try fanfare(["devices", "show", text, "--json"])
        }
        try fanfare(["devices", "show", "--suspended"])
        try fanfare(["status"])
        try fanfare(["status", "--json"])
        for format in ["text", "json", "csv"] { try fanfare(["report", "new-podcast/a", "--format", format]) }
        try fanfare(["report", "new-podcast/a", "--check"])
        try fanfare(["verify", "--json"])
        try fanfare(["devices", "export"], isExport: true)
        try fanfare([
            "devices", "export", "-o", "export.csv", "--matching", "installation_id != \"\(place.tokens[9])\"",
        ])
        exempt.insert("export.csv")
        try fanfare(["backup", "b.sqlite"])
        try fanfare(["audit"])
    }

    private func serve() throws {
        let daemon = try RunningProgram(["serve", "--log-level", "debug"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let words = ["run", "new-podcast", "--occurrence", "b", "--yes"] + Installation.words
        try fanfare(words)
        daemon.signal(SIGHUP)
        try fanfare(["run", "new-podcast", "--occurrence", "c", "--yes"] + Installation.words)
        let line = try #require(daemon.errors.split(separator: "\n").first { $0.contains("metrics and health checks") })
        let address = try #require(line.split { " =".contains($0) }.first { $0.hasPrefix("127.0.0.1:") })
        for page in ["metrics", "healthz", "readyz"] {
            said.append((page, try LocalPage.text("http://\(address)/\(page)")))
        }
        try daemon.wait { hooks.requests.count >= 4 }
        daemon.signal(SIGTERM)
        let result = try daemon.finish()
        said.append(("log of serve", result.errors + result.output))
        try fanfare(["audit", "--json"])
        for request in hooks.requests {
            said.append(("webhook", request.text + request.headers.map { "\($0)=\($1)" }.joined(separator: "\n")))
        }
    }
}

/// What must not be found, and where it is looked for.
extension Day {
    func expectNoSecrets() throws {
        let secrets = try secrets()
        #expect(said.count > 60 && said.contains { $0.text.contains("fanfare_provider_token_age_seconds{") })
        #expect(said.contains { $0.what == "webhook" })
        for (what, text) in said { try expect(what, Data(text.utf8), holdsNone: secrets) }
        try forgetProviderTokens()
        let files = try FileManager.default.subpathsOfDirectory(atPath: place.folder.path)
        let left = files.filter { !exempt.contains($0) && !$0.hasPrefix(".captured") }
        for name in ["fanfare.sqlite", "bad.csv.rejects.csv", "b.sqlite"] { #expect(left.contains(name), "\(left)") }
        for name in left {
            var isFolder: ObjCBool = false
            let path = place.folder.file(name)
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            try expect(name, try Data(contentsOf: URL(fileURLWithPath: path)), holdsNone: secrets)
        }
    }

    private func expect(_ what: String, _ data: Data, holdsNone secrets: [(name: String, text: String)]) throws {
        let lower = Data(String(decoding: data, as: UTF8.self).lowercased().utf8)
        for (name, text) in secrets {
            let isFound = data.range(of: Data(text.utf8)) != nil || lower.range(of: Data(text.lowercased().utf8)) != nil
            #expect(!isFound, "\(name) is in \(what)")
        }
    }

    private func secrets() throws -> [(name: String, text: String)] {
        var secrets = place.tokens.enumerated().map { ("token \($0)", $1) } + [("a typed token", Self.strangeToken)]
        secrets.append(("the webhook's secret", Self.webhookSecret))
        for file in ["key.p8", "other.p8"] {
            let lines = try place.folder.read(file).split(separator: "\n").filter { !$0.hasPrefix("-----") }
            try #require(lines.count >= 2)
            secrets += lines.map { ("a line of \(file)", String($0)) }
        }
        let tokens = try providerTokens()
        try #require(tokens.count == 2)
        for token in tokens {
            let parts = token.replacing("bearer ", with: "").split(separator: ".").map(String.init)
            try #require(parts.count == 3)
            secrets += [("a provider token", parts.joined(separator: ".")), ("its signature", parts[2])]
        }
        return secrets
    }

    private func providerTokens() throws -> [String] {
        let queue = try DatabaseQueue(path: place.folder.file("fanfare.sqlite"))
        defer { try? queue.close() }
        return try queue.read { try String.fetchAll($0, sql: "SELECT token FROM provider_token") }
    }

    /// They may stand in their table, and nowhere else.
    private func forgetProviderTokens() throws {
        let queue = try DatabaseQueue(path: place.folder.file("fanfare.sqlite"))
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA secure_delete = ON; DELETE FROM provider_token; VACUUM")
            _ = try db.checkpoint(.truncate)
        }
        try queue.close()
    }
}
