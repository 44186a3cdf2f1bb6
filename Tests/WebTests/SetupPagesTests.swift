import CampaignFiles
import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The forms of the setup: keys, apps, test devices, and a file of devices.
@Suite(.timeLimit(.minutes(10)))
struct SetupPagesTests {
    private static let text = """
        # The app of the tests.
        store: store.sqlite
        campaigns: campaigns
        templates: templates
        apps:
          - topic: com.example.app   # the bundle id
            team_id: TESTTEAM01
            key_id: TESTKEY001
            key_path: key.p8

        # People read this.
        retention: {outcomes: 400d}

        """

    /// A key that APNs accepts; one that it refuses has `refused` in its text.
    private static let key = "-----BEGIN PRIVATE KEY-----\nsecret-of-the-key\n-----END PRIVATE KEY-----\n"

    private static func with(_ text: String = text, _ body: (WebScene) async throws -> Void) async throws {
        let tools = { @Sendable (folder: TemporaryDirectory, held: HeldConfiguration) throws -> SetupTools in
            try folder.write(text, to: "fanfare.yaml")
            let path = folder.file("fanfare.yaml")
            @Sendable func read() throws {
                let (configuration, diagnostics) = ConfigurationFile.load(path: path)
                held.value = try #require(configuration, "\(diagnostics)")
            }
            try read()
            return SetupTools(
                source: ConfigurationSource(named: path, environment: [:]), environment: [:], probes: probes,
                reload: read)
        }
        try await WebScene.with(tools: tools, body)
    }

    private static let probes = DiagnoseInstallation.Probes(
        openStore: { _ in throw StoreError.noStore(path: "x", isEmptyFile: false) },
        credential: { credential, environment in
            guard try content(credential, environment).hasPrefix("-----BEGIN PRIVATE KEY") else {
                throw Failure(.invalidData, "no key")
            }
            return CredentialFacts()
        },
        proxy: { _ in .direct },
        reach: { app, environment, _ in
            var reached = Reachability(endpoint: "api.test:443", isWell: true, summary: "responds")
            let isRefused = (try? content(app.credential, environment).contains("refused")) ?? true
            reached.credential =
                isRefused
                ? .wrong(.credential, "APNs responds 403 InvalidProviderToken: it does not know the key")
                : .ok(.credential, "APNs accepts the credential")
            return reached
        },
        machine: MachineFacts(
            version: "1", system: "s", libraries: "l", user: "u", isClockKept: true, openFilesMax: nil,
            threadsMax: nil, networkFileSystem: { _ in nil }))

    private static func content(
        _ credential: Configuration.Credential, _ environment: PushEnvironment
    ) throws -> String {
        switch credential {
        case .key(_, _, let path): try String(contentsOfFile: path, encoding: .utf8)
        case .keys(_, let keys): try String(contentsOfFile: keys[environment]?.path ?? "", encoding: .utf8)
        case .certificate: ""
        }
    }

    /// Sends a form with a file.
    private static func send(
        _ scene: WebScene, _ path: String, _ fields: [String: String] = [:], file: String?, name: String = "f",
        headers: [String: String] = [:], as role: AccessRole = .admin
    ) async throws -> WebScene.Answer {
        var parts = fields.map { "Content-Disposition: form-data; name=\"\($0.key)\"\r\n\r\n\($0.value)\r\n" }
        if let file {
            parts.append("Content-Disposition: form-data; name=\"file\"; filename=\"\(name)\"\r\n\r\n\(file)\r\n")
        }
        let body = parts.map { "--XX\r\n\($0)" }.joined() + "--XX--\r\n"
        let own = [
            "Cookie": "fanfare=\(scene.secrets.session(of: role))", "Sec-Fetch-Site": "same-origin",
            "Content-Type": "multipart/form-data; boundary=XX",
        ]
        return try await scene.ask("POST", path, headers: own.merging(headers) { $1 }, body: body)
    }

    private static func written(_ scene: WebScene) throws -> String {
        try String(contentsOfFile: scene.folder.file("fanfare.yaml"), encoding: .utf8)
    }

    // MARK: Keys

    @Test func `a key that APNs accepts is written for the service alone, and never shown`() async throws {
        try await Self.with { scene in
            let before = try await scene.page("/setup")
            #expect(before.text.contains("There is no key yet.") && before.text.contains("Upload the key of"))
            let sent = try await Self.send(scene, "/setup/key", ["key": "com.example.app"], file: Self.key)
            #expect(sent.status == 303 && sent.header("location") == "/setup?done=key", "\(sent.text)")
            let path = scene.folder.file("key.p8")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == Self.key)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let page = try await scene.page("/setup?done=key")
            #expect(
                page.text.contains("APNs accepts the key. It is in use") && page.text.contains("The key is stored."))
            #expect(!page.text.contains("secret-of-the-key"))
            let event = try #require(
                try await scene.store.events(run: nil, since: nil, limit: 100).first { $0.kind == "key_uploaded" })
            #expect(event.actor.name == "admin (signed in)")
            #expect(event.detail.contains(#/^com\.example\.app: key TESTKEY001, SHA-256 [0-9a-f]{12}$/#))
            let names = try FileManager.default.contentsOfDirectory(atPath: scene.folder.path)
            #expect(!names.contains { $0.hasSuffix(".tmp") })
        }
    }

    @Test func `a key that APNs refuses leaves the old one, unless the person keeps it`() async throws {
        try await Self.with { scene in
            _ = try await Self.send(scene, "/setup/key", ["key": "com.example.app"], file: Self.key)
            let bad = Self.key.replacing("secret", with: "refused")
            let refused = try await Self.send(scene, "/setup/key", ["key": "com.example.app"], file: bad)
            #expect(refused.status == 422 && refused.text.contains("it does not know the key"))
            #expect(refused.text.contains("Keep it anyway") && !refused.text.contains("refused-of-the-key"))
            let path = scene.folder.file("key.p8")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == Self.key)
            let kept = try await Self.send(
                scene, "/setup/key", ["key": "com.example.app", "keep": "on"], file: bad)
            #expect(kept.header("location") == "/setup?done=kept")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == bad)
        }
    }

    @Test func `what is no key, too large, of no app, or missing is refused`() async throws {
        try await Self.with { scene in
            let rows: [(key: String, file: String?, status: Int, words: String)] = [
                ("com.example.app", "no key at all", 422, "this is not an APNs key"),
                ("com.example.app", String(repeating: "x", count: 70_000), 413, "too large for a key"),
                ("com.example.other", Self.key, 404, "add the app first"),
                ("com.example.app", nil, 422, "choose the key file"),
                ("com.example.app", "", 422, "choose the key file"),
            ]
            for row in rows {
                let answer = try await Self.send(scene, "/setup/key", ["key": row.key], file: row.file)
                #expect(answer.status == row.status && answer.text.contains(row.words), "\(row) \(answer.text)")
            }
            for role in [AccessRole.viewer, .author, .sender, .approver] {
                let answer = try await Self.send(scene, "/setup/key", file: Self.key, as: role)
                #expect(answer.status == 403, "\(role)")
            }
            #expect(!FileManager.default.fileExists(atPath: scene.folder.file("key.p8")))
            let viewer = try await scene.page("/setup", as: .viewer)
            #expect(viewer.status == 200 && !viewer.text.contains("<form method=\"post\" action=\"/setup"))
        }
    }

    @Test func `an app is added to an empty configuration, and its key is asked for`() async throws {
        let empty = "# Nothing yet.\nstore: store.sqlite\napps: []   # the pages add them\n"
        try await Self.with(empty) { scene in
            let before = try await scene.page("/setup")
            #expect(before.text.contains("Add the app, then upload its key."))
            let form = ["topic": "com.example.new", "team": "DEF123GHIJ", "id": "1234567890", "environment": ""]
            let added = try await scene.page("/setup/app", form: form)
            #expect(added.header("location") == "/setup?done=app", "\(added.text)")
            #expect(
                try Self.written(scene)
                    == """
                    # Nothing yet.
                    store: store.sqlite
                    apps:   # the pages add them
                      - topic: "com.example.new"
                        team_id: "DEF123GHIJ"
                        key_id: "1234567890"
                        key_path: "AuthKey_1234567890.p8"

                    """)
            let page = try await scene.page("/setup?done=app")
            #expect(page.text.contains("Upload the key of com.example.new"))
            let second = form.merging(["topic": "com.example.two", "environment": "sandbox"]) { $1 }
            #expect(try await scene.page("/setup/app", form: second).status == 303)
            #expect(scene.webConsole.cases.configuration().apps.map(\.topic) == ["com.example.new", "com.example.two"])
            let sent = try await Self.send(
                scene, "/setup/key", ["key": "com.example.two/sandbox"], file: Self.key)
            #expect(sent.header("location") == "/setup?done=key")
            let again = try await scene.page("/setup/app", form: form)
            #expect(again.status == 422 && again.text.contains("two apps have the topic"))
            #expect(again.text.contains("value=\"com.example.new\""))
        }
    }

    @Test func `a configuration that may not be written says what the operator adds`() async throws {
        guard geteuid() != 0 else { return }
        try await Self.with { scene in
            let path = scene.folder.file("fanfare.yaml")
            chmod(path, 0o444)
            let page = try await scene.page("/setup")
            #expect(page.text.contains("cannot write \(path); ask the operator"))
        }
    }

    // MARK: Test devices

    @Test func `a test device is named and removed, and comments stay`() async throws {
        try await Self.with { scene in
            for number in 1...2 {
                let token = String(repeating: "ab", count: 31) + "0\(number)"
                let body = "{\"token\": \"\(token)\", \"environment\": \"production\", \"user_id\": \"ann\"}"
                let made = try await scene.api("PUT", "/devices/com.example.app/install-\(number)", body: body)
                #expect(made.status < 300, "\(made.text)")
            }
            let added = try await scene.page(
                "/setup/test-devices", form: ["name": "Ann’s phone", "device": "install-1"])
            #expect(added.header("location") == "/setup?done=test-device", "\(added.text)")
            #expect(scene.webConsole.cases.testDeviceNames == ["Ann’s phone"])
            #expect(try Self.written(scene).contains("# People read this.\nretention: {outcomes: 400d}"))
            #expect(try await scene.page("/setup").text.contains("Ann’s phone</th><td class=\"text\">install-1</td>"))
            for (name, device, status, words) in [
                ("Ben", "ann", 422, "has several devices"), ("Ben", "nobody", 404, "no device"),
                ("Ann’s phone", "install-2", 422, "already named"), ("", "install-2", 422, "give the device a name"),
            ] {
                let refused = try await scene.page("/setup/test-devices", form: ["name": name, "device": device])
                #expect(refused.status == status && refused.text.contains(words), "\(name) \(device) \(refused.text)")
            }
            let removed = try await scene.page("/setup/test-devices/remove", form: ["name": "Ann’s phone"])
            #expect(removed.header("location") == "/setup?done=removed")
            #expect(try Self.written(scene) == Self.text)
            #expect(try await scene.page("/setup/test-devices/remove", form: ["name": "x"]).status == 404)
        }
    }

    // MARK: Devices

    private static func list(_ topic: String = "com.example.app") -> String {
        let token = { (number: Int) in String(repeating: "cd", count: 28) + "0000000\(number)" }
        return "token,environment,topic,installation_id,favourite\n"
            + (1...7).map { "\(token($0)),production,\(topic),i-\($0),blue\n" }.joined()
            + "nonsense,production,\(topic),i-8,red\n"
    }

    /// Returns the page of an import once it is no longer in progress.
    private static func finished(_ scene: WebScene, _ address: String) async throws -> WebScene.Answer {
        let changes = try FileChanges(folder: scene.folder.path, names: ["store.sqlite-wal"])
        let deadline = ContinuousClock.now + Process.longest
        while true {
            let page = try await scene.page(address)
            guard page.text.contains("is being imported"), ContinuousClock.now < deadline else { return page }
            #expect(page.header("refresh") == "2")
            // The page may change a moment after the last write, so an import without writes is looked at again, too.
            do {
                try await OwnThread.run { try changes.wait(until: min(deadline, .now + .seconds(1))) }
            } catch is FileChanges.Overdue {
                continue
            }
        }
    }

    @Test func `a file of devices is previewed, imported in the background, and deleted`() async throws {
        try await Self.with { scene in
            let sent = try await Self.send(scene, "/setup/devices", file: Self.list(), name: "export.csv")
            #expect(sent.status == 303, "\(sent.text)")
            let address = try #require(sent.header("location"))
            let uploads = scene.folder.file("uploads")
            let file = try #require(try FileManager.default.contentsOfDirectory(atPath: uploads).first)
            let facts = try FileManager.default.attributesOfItem(atPath: "\(uploads)/\(file)")
            #expect(facts[.posixPermissions] as? Int == 0o600)
            let page = try await scene.page(address)
            #expect(page.text.contains("Columns: token, environment, topic, installation_id"))
            #expect(page.text.contains("will be ignored: favourite") && page.text.contains("Import these 7 devices"))
            #expect(page.text.contains("1 line cannot be used") && page.text.contains("Line 9: token"))
            #expect(page.text.contains("…00000001") && !page.text.contains("cdcdcdcdcd"))
            #expect(page.text.components(separatedBy: "<td>i-").count == 6)
            #expect(try await scene.page(address, as: .author).status == 403)
            #expect(try await scene.page(address, form: [:]).status == 303)
            let done = try await Self.finished(scene, address)
            #expect(done.text.contains("7 devices imported: 7 new. 1 line could not be used."), "\(done.text)")
            #expect(try await scene.store.deviceCounts().reduce(0) { $0 + $1.count } == 7)
            #expect(try FileManager.default.contentsOfDirectory(atPath: uploads) == [])
            let again = try await scene.page(address, form: [:])
            #expect(again.status == 409 && again.text.contains("was imported or removed"))
            try await scene.audited("devices_imported")
        }
    }

    @Test func `an upload is deleted after an hour, or when the person discards it`() async throws {
        try await Self.with { scene in
            let uploads = scene.folder.file("uploads")
            let first = try await Self.send(scene, "/setup/devices", file: Self.list())
            scene.sending.clock.advance(by: .seconds(3600))
            #expect(try await scene.page(try #require(first.header("location"))).status == 404)
            #expect(try FileManager.default.contentsOfDirectory(atPath: uploads) == [])
            let second = try #require(
                try await Self.send(scene, "/setup/devices", file: Self.list()).header("location"))
            #expect(try await scene.page(second + "/discard", form: [:]).header("location") == "/setup")
            #expect(try await scene.page(second).status == 404)
            #expect(try FileManager.default.contentsOfDirectory(atPath: uploads) == [])
        }
    }

    @Test func `what is no list of devices, or too large, is refused`() async throws {
        try await Self.with { scene in
            let none = try await Self.send(scene, "/setup/devices", file: nil)
            #expect(none.status == 422 && none.text.contains("choose a file of devices"))
            let sent = try await Self.send(scene, "/setup/devices", file: "name,colour\nann,blue\n")
            let page = try await scene.page(try #require(sent.header("location")))
            #expect(page.text.contains("line 1: the column") && !page.text.contains("Import these"))
            #expect(!page.text.contains(scene.folder.path))
            let connection = try RawConnection(port: scene.port)
            try await connection.send(
                "POST /setup/devices HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
                    + "Cookie: fanfare=\(scene.secrets.session(of: .admin))\r\nContent-Length: 60000000\r\n"
                    + "Content-Type: multipart/form-data; boundary=XX\r\n\r\n--XX\r\n")
            let answer = try await connection.receive(until: "</html>")
            #expect(answer.hasPrefix("HTTP/1.1 413 ") && answer.contains("ask the operator to import it"))
            let uploads = try FileManager.default.contentsOfDirectory(atPath: scene.folder.file("uploads"))
            #expect(uploads.count == 1)
        }
    }

    @Test func `an admin of one app imports the devices of that app alone`() async throws {
        try await Self.with { scene in
            let access = scene.webConsole.cases.access
            let made = try await access.create(
                name: "of-one", role: .admin, topic: "com.example.app", expiresIn: nil, by: "test",
                now: scene.sending.clock.now)
            let session = try await access.signIn(made.token, by: "test", now: scene.sending.clock.now)
            let own = ["Cookie": "fanfare=\(session)"]
            for (topic, status) in [("com.example.other", 403), ("com.example.app", 303)] {
                let sent = try await Self.send(scene, "/setup/devices", file: Self.list(topic), headers: own)
                let address = try #require(sent.header("location"))
                let page = try await scene.page(address, headers: own)
                #expect(page.text.contains("Import these") == (status == 303))
                #expect(try await scene.page(address, form: [:], headers: own).status == status)
                if status == 303 { _ = try await Self.finished(scene, address) }
            }
            #expect(try await scene.store.deviceCounts().reduce(0) { $0 + $1.count } == 7)
            // A device of another app behind many lines that cannot be used.
            let bad = String(repeating: "x,production,com.example.app,i,blue\n", count: 10_000)
            let hidden = Self.list().split(separator: "\n", maxSplits: 1).joined(separator: "\n\(bad)")
                .replacing("com.example.app,i-7", with: "com.example.other,i-7")
            let sent = try await Self.send(scene, "/setup/devices", file: hidden, headers: own)
            let address = try #require(sent.header("location"))
            #expect(try await scene.page(address, form: [:], headers: own).status == 403)
            // The import itself rejects such lines, whatever the preview has found.
            let id = String(try #require(address.split(separator: "/").last))
            let caller = Caller(name: "of-one", role: .admin, topic: "com.example.app", proof: .session)
            try scene.webConsole.cases.uploads.start(id, by: caller.actor, sees: caller.sees)
            let done = try await Self.finished(scene, address)
            #expect(done.text.contains("6 devices imported") && done.text.contains("10,002 lines"), "\(done.text)")
            #expect(try await scene.store.deviceCounts().map(\.topic) == ["com.example.app"])
            let page = try await scene.page("/setup", headers: own)
            #expect(!page.text.contains("action=\"/setup/key\"") && page.text.contains("action=\"/setup/devices\""))
        }
    }
}
