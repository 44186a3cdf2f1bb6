import Campaigns
import Daemon
import Foundation
import HTTPTypes
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// A role without `run` makes nothing start, by any operation and any form. New routes are asked as well, since all
/// that there are is asked.
@Suite(.timeLimit(.minutes(10)))
struct RoutesWithoutRunTests {
    /// Far ahead: nothing of it starts within the test.
    private static let scheduled = WebScene.scheduledText
        .replacing(
            "schedule: {cron: \"30 2 * * *\", zone: Europe/Berlin}", with: "schedule: {at: 2090-01-01T09:00, zone: UTC}"
        )
        .replacing("audience: everyone", with: "audience: segment(\"fans\") or segment(\"rule\")")
    private static let now = scheduled.replacing("at: 2090-01-01T09:00", with: "cron: \"* * * * *\"")

    /// What starts automatically, and what it would send, to whom.
    private struct Automatic: Hashable {
        var campaigns: [String: Campaign]
        var templates: [String: Template]
        var segments: SegmentContents
        var runs: [Int64: RunState]
        /// Tokens that may start runs.
        var tokens: Set<String>

        init(_ scene: WebScene) async throws {
            let ready = RoutesWithoutRunTests.ready(scene)
            let campaigns = Dictionary(ready.map { ($0.campaign.name, $0.campaign) }) { first, _ in first }
            let morning = try #require(campaigns["morning"])
            self.campaigns = campaigns
            templates = Dictionary(ready.map { ($0.campaign.name, $0.template) }) { first, _ in first }
            segments = try await scene.store.segmentContents(of: morning)
            let runs = try await scene.store.runs(limit: 100).map { run in
                // A role may end a run that others started, and goes no further.
                (run.id, run.state == .cancelled ? RunState.paused : run.state)
            }
            self.runs = Dictionary(runs) { first, _ in first }
            tokens = Set(try await scene.store.accessTokens().filter { $0.role.may(.run) }.map(\.name))
        }
    }

    private static func ready(_ scene: WebScene) -> [ReadyCampaign] {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(scene.webConsole.cases.configuration())
        return catalogue.ready.filter { $0.campaign.schedule != nil || $0.campaign.feed != nil }
    }

    private static func fill(_ scene: WebScene) async throws -> Int64 {
        try await scene.addCampaign()
        try scene.folder.write(scheduled, to: "campaigns/morning.yaml")
        let line = "{\"installation_id\": \"install-1\"}\n"
        #expect(try await scene.lines("/segments/fans/members", line).status == 200)
        let rule = try await scene.api("PUT", "/segments/rule", body: "{\"expression\": \"locale in (\\\"de\\\")\"}")
        #expect(rule.status == 200, "\(rule.text)")
        let run = try await scene.sending.start(try scene.sending.definition { $0.name = "new-podcast" })
        #expect(try await scene.api("POST", "/runs/\(run.id)/pause", body: "{}").status == 200)
        return run.id
    }

    private static func json(_ values: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: values), as: UTF8.self)
    }

    /// Texts that would start something, now or soon.
    private static let texts: [String] = [
        now, now.replacing("campaign: morning", with: "campaign: new-podcast"),
        now.replacing("campaign: morning", with: "campaign: nightly"),
        WebScene.campaignText
            + "trigger: {feed: \"https://example.org/feed.xml\", every: 15m, variables: {title: item.title}}\n",
        WebScene.campaignText.replacing("template: new-podcast", with: "template: own"),
        // Started by hand, under the name of one that is not.
        WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: morning"),
    ]
    private static let templates: [String] = [
        WebScene.templateText.replacing("is out", with: "is wrong"),
        WebScene.templateText.replacing("template: new-podcast", with: "template: own"),
    ]

    private static func bodies() throws -> [String: [String]] {
        let reason = try json(["reason": "x"])
        let validated = try (texts + templates).map { try json(["text": $0]) }
        let start = try json(["occurrence": "x", "variables": ["title": "x"]])
        return [
            "putCampaign": texts, "putTemplate": templates, "validateCampaign": validated,
            "validateTemplate": validated, "defineSegment": [try json(["expression": "everyone"])],
            "changeSegmentMembers": ["{\"installation_id\": \"install-2\"}\n"],
            "countExpression": [try json(["expression": "everyone", "topic": PipelineScene.topic])],
            "startCampaign": [start], "planCampaign": [start], "renderCampaign": [try json(["device": "install-1"])],
            "testSendCampaign": [try json(["device": "install-1"])], "approveStage": [try json(["stage": 1])],
            "createToken": [try json(["name": "evil", "role": "admin"])], "pauseRun": [reason], "resumeRun": [reason],
            "rejectChange": [reason], "liftStop": [reason], "liftStopOfCampaign": [reason], "stopRun": [reason],
            "correctRun": [try json(["template": "new-podcast"])],
            "registerDevices": [], "registerDevice": [],
        ]
    }

    private static func paths(_ path: String, run: Int64) -> [String] {
        let values: [String: [String]] = [
            "run": ["\(run)"], "campaign": ["morning", "new-podcast", "nightly"], "template": ["new-podcast", "own"],
            "segment": ["fans", "rule"], "topic": [PipelineScene.topic], "installation": ["install-1"],
            "device": ["install-1"], "plan": ["p2-x"], "token": ["admin"], "kind": ["campaign", "template"],
            "change": ["1", "2", "3"],
        ]
        return values.reduce([path]) { paths, value in
            paths.flatMap { path in
                path.contains("{\(value.key)}")
                    ? value.value.map { path.replacing("{\(value.key)}", with: $0) } : [path]
            }
        }
    }

    /// With every condition that a change may ask for: none, the file is new, and the file is as it is.
    private static func conditions(
        _ scene: WebScene, _ operation: Web.Operation, _ path: String
    ) async throws -> [[String: String]] {
        guard operation.parameters.contains(where: { $0.place == .header }) else { return [[:]] }
        var conditions: [[String: String]] = [[:], ["If-None-Match": "*"]]
        let file = path.replacing(/\/(?:pause|resume|approve|cancel)$/, with: "")
        if let etag = try await scene.api("GET", file).header("etag") { conditions.append(["If-Match": etag]) }
        return conditions
    }

    /// The fields of every form there is, with what would change most.
    private static func forms(_ text: String, etag: String) -> [String: String] {
        [
            "kind": "campaign", "file": "morning", "text": text, "etag": etag, "do": "keep", "name": "fans",
            "expression": "everyone", "mode": "add", "key": "installation_id", "members": "install-2", "reason": "x",
            "role": "admin", "occurrence": "x", "title": "x", "variables.title": "x", "device": "install-1",
            "scope": "all", "stage": "1", "plan": "p2-x", "topic": PipelineScene.topic, "push_type": "alert",
            "when": "now", "token": "x",
        ]
    }

    @Test(arguments: AccessRole.allCases.filter { !$0.may(.run) })
    func `nothing that starts automatically changes, and nothing starts`(role: AccessRole) async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            let run = try await Self.fill(scene)
            let before = try await Automatic(scene)
            #expect(before.campaigns.keys.sorted() == ["morning"] && before.runs == [run: .paused])
            let bodies = try Self.bodies()
            var asked = 0
            for operation in scene.webConsole.operations {
                let given: [String?] = operation.body == nil ? [nil] : bodies[operation.id] ?? ["{}"]
                for path in Self.paths(operation.path, run: run) {
                    for condition in try await Self.conditions(scene, operation, path) {
                        for body in given {
                            var headers = condition
                            if operation.id == "changeSegmentMembers" {
                                headers["Content-Type"] = "application/x-ndjson"
                            }
                            if operation.id.hasPrefix("put") { headers["Content-Type"] = "application/yaml" }
                            let answer = try await scene.api(
                                operation.method.rawValue, path, as: role, body: body, headers: headers)
                            #expect(answer.status < 500, "\(operation.id) \(answer.text)")
                            if operation.permission == .run { #expect(answer.status == 403, "\(operation.id)") }
                            asked += 1
                        }
                    }
                }
            }
            #expect(asked > 60)
            let etag = try #require(try await scene.api("GET", "/campaigns/morning").header("etag"))
            for page in scene.webConsole.pages where page.method == .post && !page.path.hasPrefix("/sign-") {
                for path in Self.paths(page.path, run: run) {
                    for text in Self.texts.prefix(2) {
                        let form = Self.forms(text, etag: etag.replacing("\"", with: ""))
                        let answer = try await scene.page(path, as: role, form: form)
                        #expect(answer.status < 500, "\(page.path) \(answer.text)")
                    }
                }
            }
            #expect(try await Automatic(scene) == before)
            var agenda = Agenda()
            let clock = scene.sending.clock
            let campaigns = Self.ready(scene)
            _ = agenda.update(campaigns, marks: [:], now: clock.now)
            clock.advance(by: .seconds(86_400))
            let due = DueRuns(store: scene.store, actor: "daemon")
            #expect(try await due.make(agenda.due(at: clock.now), now: clock.now).isEmpty)
            #expect(try await due.awaited(campaigns, now: clock.now).isEmpty)
            #expect(try await Automatic(scene).runs == before.runs)
        }
    }

    /// The same requests do start something for a role that may.
    @Test func `the same requests change what starts for a role with run`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            _ = try await Self.fill(scene)
            let before = try await Automatic(scene)
            let etag = try #require(try await scene.api("GET", "/campaigns/morning").header("etag"))
            let written = try await scene.api(
                "PUT", "/campaigns/morning", as: .admin, body: Self.now,
                headers: ["If-Match": etag, "Content-Type": "application/yaml"])
            #expect(written.status == 200, "\(written.text)")
            #expect(try await Automatic(scene) != before)
            var agenda = Agenda()
            let clock = scene.sending.clock
            _ = agenda.update(Self.ready(scene), marks: [:], now: clock.now)
            clock.advance(by: .seconds(120))
            #expect(!agenda.due(at: clock.now).isEmpty)
        }
    }
}
