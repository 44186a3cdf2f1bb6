import Campaigns
import Foundation
import HTTPTypes
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// No caller confined to one app is ever told what only another app has: on every route, with every role.
@Suite(.timeLimit(.minutes(10)))
struct ConfinedAnswersTests {
    private static let own = PipelineScene.topic
    private static let other = "org.example.other"
    /// In everything that belongs to the other app and that no request of this test names.
    private static let secret = "quagga"
    /// In names of the other app that requests of this test use: answers may repeat them.
    private static let named = "zebra"

    private static func configure(_ configuration: inout Configuration) {
        configuration.http.editing = true
        var theirs = configuration.apps[0]
        theirs.topic = other
        configuration.apps.append(theirs)
    }

    private static func fill(_ scene: WebScene) async throws -> Int64 {
        try await scene.addCampaign()
        let text = WebScene.campaignText.replacing("topic: \(own)", with: "topic: \(other)")
        let template = WebScene.templateText
        for name in ["zebra-words", "zebra-correction"] {
            let words = template.replacing("template: new-podcast", with: "template: \(name)")
                .replacing("is out", with: "quagga is out")
            try scene.folder.write(words, to: "templates/\(name).yaml")
        }
        let theirs = text.replacing(
            "template: new-podcast", with: "template: zebra-words\ncorrection: zebra-correction"
        )
        .replacing("show: WenderCast", with: "show: quagga-value")
        .replacing("audience:", with: "description: quagga\naudience:")
        for (file, name) in [("zebra", "zebra"), ("quagga-file", "zebra-shared")] {
            let own = theirs.replacing("campaign: new-podcast", with: "campaign: \(name)")
                .replacing("description: quagga\n", with: "")
            try scene.folder.write(own, to: "campaigns/\(file).yaml")
        }
        let now = scene.sending.clock.now
        var device = DeviceRecord(
            token: try #require(DeviceToken(bytes: PipelineScene.token(99))), environment: .production, topic: other)
        device.installationID = "zebra-phone"
        device.userID = "quagga-user"
        device.tags = ["quagga-tag"]
        device.attributes = ["quagga-key": "quagga-attribute"]
        device.model = "quagga-model"
        _ = try await scene.store.importDevices([device], now: now)
        for segment in ["zebra-segment", "quagga-segment"] {
            let line = "{\"installation_id\": \"zebra-phone\"}\n"
            #expect(try await scene.lines("/segments/\(segment)/members", line).status == 200)
        }
        let run = try await scene.sending.start(
            try scene.sending.definition {
                $0.name = "zebra"
                $0.topic = other
            }, occurrence: "quagga-occurrence")
        let waiting = WebScene.scheduledText.replacing("campaign: morning", with: "campaign: zebra-waiting")
            .replacing("topic: \(own)", with: "topic: \(other)")
            .replacing("template: new-podcast", with: "template: zebra-words")
            .replacing("title: Morning", with: "title: quagga-title")
        let held = try await scene.api(
            "PUT", "/campaigns/zebra-waiting", as: .author, body: waiting,
            headers: ["If-None-Match": "*", "Content-Type": "application/yaml"])
        #expect(held.status == 202, "\(held.text)")
        let stop = "{\"reason\": \"quagga-reason\"}"
        #expect(try await scene.api("POST", "/campaigns/zebra/stop", body: stop).status < 300)
        #expect(try await scene.api("POST", "/runs/\(run.id)/pause", body: stop).status < 500)
        return run.id
    }

    /// Texts and names that ask for what is not theirs.
    private static func bodies() throws -> [String: [String]] {
        let text = WebScene.campaignText
        let texts = [
            text, text.replacing("campaign: new-podcast", with: "campaign: zebra-shared"),
            text.replacing("template: new-podcast", with: "template: zebra-words"),
            text.replacing("template: new-podcast", with: "template: new-podcast\ncorrection: zebra-correction"),
            text.replacing("audience: locale in (\"en\", \"de\")", with: "audience: segment(\"zebra-segmen\")"),
            text.replacing(
                "audience: locale in (\"en\", \"de\")",
                with: "audience_sql: SELECT json_extract('{}', (SELECT max(user_id) FROM device_view))"),
        ]
        let json = try texts.map { text in
            String(decoding: try JSONSerialization.data(withJSONObject: ["text": text]), as: UTF8.self)
        }
        let counts = ["zebra-segment", "zebra-segmen", "quagg"].map { name in
            "{\"expression\": \"segment(\\\"\(name)\\\")\", \"topic\": \"\(own)\"}"
        }
        return [
            "validateCampaign": json, "validateTemplate": json, "putCampaign": texts, "putTemplate": texts,
            "countExpression": counts, "correctRun": ["{\"template\": \"zebra-correction\"}", "{\"template\": \"x\"}"],
            "testSendCampaign": ["{\"device\": \"zebra-phone\"}"], "renderCampaign": ["{\"device\": \"zebra-phone\"}"],
            "startCampaign": ["{\"occurrence\": \"x\"}"],
        ]
    }

    /// The fields of every form there is, with names of the other app where a form has a name, and without.
    private static func forms() throws -> [[String: String]] {
        let texts = try bodies()["putCampaign", default: []]
        let common = [
            "etag": "", "do": "keep", "expression": "segment(\"zebra-segment\")", "mode": "add",
            "key": "installation_id", "members": "zebra-phone", "reason": "x", "role": "admin", "occurrence": "x",
            "title": "x", "variables.title": "x", "stage": "1", "plan": "p2-x", "topic": own, "push_type": "alert",
            "when": "now",
        ]
        let theirs = [
            "kind": "campaign", "file": "zebra", "name": "zebra-segment", "device": "zebra-phone",
            "scope": "campaign zebra", "template": "zebra-correction", "part": "zebra",
        ]
        let ours = [
            "kind": "template", "file": "new-podcast", "name": "x", "device": "install-1", "scope": "all",
            "template": "zebr", "do": "count",
        ]
        return texts.map { text in common.merging(theirs) { $1 }.merging(["text": text]) { $1 } }
            + [common.merging(ours) { $1 }.merging(["text": texts[0]]) { $1 }]
    }

    /// The conditions of a change: none, a new file, and the file as it is.
    private static func conditions(
        _ scene: WebScene, _ operation: Web.Operation, _ path: String
    ) async throws -> [[String: String]] {
        guard operation.method == .put, operation.parameters.contains(where: { $0.place == .header }) else {
            return [[:]]
        }
        var conditions: [[String: String]] = [[:], ["If-None-Match": "*"]]
        if let etag = try await scene.api("GET", path).header("etag") { conditions.append(["If-Match": etag]) }
        return conditions
    }

    /// The files of both folders, to be put back: an app may write the name of another's segment into its own file.
    private struct Files {
        private let texts: [String: String]

        init(_ scene: WebScene) throws {
            var texts: [String: String] = [:]
            for path in try Self.paths(scene) { texts[path] = scene.text(of: path) }
            self.texts = texts
        }

        func restore(_ scene: WebScene) throws {
            for path in try Self.paths(scene) where scene.text(of: path) != texts[path] {
                try FileManager.default.removeItem(atPath: scene.folder.file(path))
                if let text = texts[path] { try scene.folder.write(text, to: path) }
            }
        }

        private static func paths(_ scene: WebScene) throws -> [String] {
            try ["campaigns", "templates"].flatMap { folder in
                try FileManager.default.contentsOfDirectory(atPath: scene.folder.file(folder)).map { "\(folder)/\($0)" }
            }
        }
    }

    /// What a stream of events tells first.
    private static func stream(
        _ scene: WebScene, _ path: String, headers: [String: String]
    ) async throws -> WebScene.Answer {
        let connection = try RawConnection(port: scene.port)
        let cookie = headers["Cookie", default: ""]
        try await connection.send(
            "GET \(path) HTTP/1.1\r\nHost: localhost\r\nCookie: \(cookie)\r\n\r\n")
        let text = try await connection.receive(until: "}\n\n")
        connection.leave()
        return WebScene.Answer(status: 0, headers: [:], text: text)
    }

    private static func paths(_ path: String, run: Int64) -> [String] {
        let values: [String: [String]] = [
            "run": ["\(run)"], "campaign": ["new-podcast", "zebra", "zebr"],
            "template": ["new-podcast", "zebra-words", "zebra-correction", "zebra-word"],
            "segment": ["zebra-segment", "zebra-segmen"], "topic": [other], "installation": ["zebra-phone"],
            "device": ["zebra-phone", "5"], "plan": ["p1-x"], "token": ["x"], "kind": ["campaign", "template"],
            "change": ["1", "2"],
        ]
        return values.reduce([path]) { paths, value in
            paths.flatMap { path in
                path.contains("{\(value.key)}")
                    ? value.value.map { path.replacing("{\(value.key)}", with: $0) } : [path]
            }
        }
    }

    private static func check(_ answer: WebScene.Answer, _ asked: String, _ what: String) {
        #expect(!answer.text.contains(secret), "\(what): \(answer.text.prefix(2000))")
        guard !asked.contains(named) else { return }
        #expect(!answer.text.contains(named), "\(what): \(answer.text.prefix(2000))")
    }

    @Test(arguments: AccessRole.allCases)
    func `what only another app has is in no answer`(role: AccessRole) async throws {
        try await WebScene.with(Self.configure) { scene in
            let run = try await Self.fill(scene)
            let bearer = try await scene.confined(to: Self.own, as: role)
            let bodies = try Self.bodies()
            let files = try Files(scene)
            for operation in scene.webConsole.operations where operation.id != "revokeToken" {
                let given: [String?] = operation.body == nil ? [nil] : bodies[operation.id] ?? ["{}"]
                for path in Self.paths(operation.path, run: run) {
                    for condition in try await Self.conditions(scene, operation, path) {
                        for body in given {
                            let answer = try await scene.api(
                                operation.method.rawValue, path, body: body,
                                headers: bearer.merging(condition) { $1 })
                            Self.check(answer, path + (body ?? ""), "\(operation.method) \(path) \(body ?? "")")
                            try files.restore(scene)
                        }
                    }
                }
            }
            guard role != .registrar else { return }
            let visitor = try await scene.confinedVisitor(to: Self.own, as: role)
            for page in scene.webConsole.pages where page.method == .get {
                for path in Self.paths(page.path, run: run) {
                    // A stream of another app's run is refused with a whole answer.
                    let answer =
                        path == "/live"
                        ? try await Self.stream(scene, path, headers: visitor)
                        : try await scene.page(path, headers: visitor)
                    Self.check(answer, path, "GET \(path)")
                }
            }
            for page in scene.webConsole.pages where page.method == .post && !page.path.hasPrefix("/sign-") {
                for path in Self.paths(page.path, run: run) {
                    for form in try Self.forms() {
                        let answer = try await scene.page(path, form: form, headers: visitor)
                        let asked = path + form.values.joined()
                        Self.check(answer, asked, "POST \(path) \(form)")
                        try files.restore(scene)
                    }
                }
            }
            let counted = try await scene.page(
                "/segments/count?expression=segment(%22zebra-segment%22)&topic=\(Self.own)", headers: visitor)
            Self.check(counted, "zebra", "count")
        }
    }

    @Test(arguments: [AccessRole.author, .sender, .admin])
    func `a plan of an audience_sql or a segment of another app tells nothing of it`(role: AccessRole) async throws {
        try await WebScene.with(Self.configure) { scene in
            _ = try await Self.fill(scene)
            let bearer = try await scene.confined(to: Self.own, as: role)
            let audiences = [
                "audience_sql: SELECT json_extract('{}', (SELECT max(user_id) FROM device_view))",
                "audience_sql: SELECT 1 FROM run_view WHERE occurrence = 'quagga-occurrence'",
                "audience: segment(\"zebra-segment\")", "audience: segment(\"zebra-segments\")",
            ]
            for audience in audiences {
                let text = WebScene.campaignText.replacing("audience: locale in (\"en\", \"de\")", with: audience)
                try scene.folder.write(text, to: "campaigns/new-podcast.yaml")
                let body = "{\"variables\": {\"title\": \"x\"}}"
                let answer = try await scene.api("POST", "/campaigns/new-podcast/plan", body: body, headers: bearer)
                #expect(!answer.text.contains("quagga-user"), "\(answer.text)")
                guard audience.hasPrefix("audience:") else { continue }
                #expect(answer.status == 422)
                #expect(answer.problem?.detail.hasSuffix("; import it first") == true, "\(answer.text)")
            }
        }
    }

    @Test func `another app's prepared correction is neither read nor written nor sent`() async throws {
        try await WebScene.with(Self.configure) { scene in
            _ = try await Self.fill(scene)
            let author = try await scene.confined(to: Self.own, as: .author)
            #expect(try await scene.api("GET", "/templates/zebra-correction", headers: author).status == 404)
            let etag = try #require(try await scene.api("GET", "/templates/zebra-correction").header("etag"))
            let before = try #require(scene.text(of: "templates/zebra-correction.yaml"))
            let written = try await scene.api(
                "PUT", "/templates/zebra-correction", body: before.replacing("quagga", with: "Owned"),
                headers: author.merging(["If-Match": etag]) { $1 })
            #expect(written.status == 404)
            #expect(scene.text(of: "templates/zebra-correction.yaml") == before)
            let access = CampaignAccess(
                scene.webConsole.cases, Caller(name: "x", role: .sender, topic: Self.own, proof: .token))
            #expect(!access.seesTemplate("zebra-correction") && access.seesTemplate("new-podcast"))
        }
    }
}
