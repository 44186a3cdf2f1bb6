import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Web

/// Whoever is confined to one app does not learn what others have.
@Suite(.timeLimit(.minutes(10)))
struct ConfinementTests {
    /// An app of its own, whose name begins like the other's.
    private static let other = "\(PipelineScene.topic).kids"

    private static func addDevices(_ scene: WebScene, _ numbers: Range<Int>, topic: String) async throws {
        let now = scene.sending.clock.now
        let records = try numbers.map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: topic)
            record.installationID = "install-\(number)"
            record.locale = "de"
            record.registeredAt = now
            return record
        }
        _ = try await scene.store.importDevices(records, now: now)
    }

    private static func members(_ numbers: Range<Int>) -> String {
        numbers.map { "{\"installation_id\": \"install-\($0)\"}\n" }.joined()
    }

    @Test(arguments: [
        ("com.a.b", true), ("com.a.b.voip", true), ("com.a.b.voip-ptt", true), ("com.a.b.complication", true),
        ("com.a.b.pushkit.fileprovider", true), ("com.a.b.location-query", true),
        ("com.a.b.push-type.liveactivity", true), ("com.a.b.push-type.widgets", true),
        ("com.a.b.push-type.controls", true), ("com.a.b.c", false), ("com.a.bc", false), ("com.a", false),
        ("com.a.b.voip.voip", false), ("com.a.b.", false),
    ])
    func `an app has its own topic and those of push types`(topic: String, isOwn: Bool) {
        #expect(topic.isTopic(of: "com.a.b") == isOwn)
    }

    @Test func `another app whose name begins like one's own is another's`() async throws {
        try await WebScene.with { scene in
            try await Self.addDevices(scene, 0..<2, topic: PipelineScene.topic)
            try await Self.addDevices(scene, 2..<3, topic: "\(PipelineScene.topic).voip")
            try await Self.addDevices(scene, 3..<4, topic: Self.other)
            let own = try await scene.confined(to: PipelineScene.topic)
            let counts: DeviceCountsResult = try await scene.api("GET", "/devices/counts", headers: own).result()
            #expect(Set(counts.counts.map(\.topic)) == [PipelineScene.topic, "\(PipelineScene.topic).voip"])
            let found = try await scene.api("GET", "/devices?find=install-3", headers: own)
            #expect(found.status == 404)
            let run = try await scene.sending.start(try scene.sending.definition { $0.topic = Self.other })
            #expect(try await scene.api("GET", "/runs/\(run.id)", headers: own).status == 404)
            let removed = try await scene.api("DELETE", "/devices/\(Self.other)/install-3", headers: own)
            #expect(removed.status == 403)
        }
    }

    @Test func `segments are those with devices of one's app, and have as many as there are of it`() async throws {
        try await WebScene.with { scene in
            try await Self.addDevices(scene, 0..<2, topic: PipelineScene.topic)
            try await Self.addDevices(scene, 2..<3, topic: "\(PipelineScene.topic).voip")
            try await Self.addDevices(scene, 3..<9, topic: Self.other)
            for (name, numbers) in [("secret", 3..<9), ("shared", 0..<9)] {
                let answer = try await scene.lines("/segments/\(name)/members", Self.members(numbers))
                #expect(answer.status == 200)
            }
            let german = "{\"expression\": \"locale in (\\\"de\\\")\"}"
            #expect(try await scene.api("PUT", "/segments/german", body: german).status == 200)
            let all: ListPage<SegmentResult> = try await scene.api("GET", "/segments").result()
            #expect(all.items.map(\.count) == [9, 6, 9])
            let own = try await scene.confined(to: PipelineScene.topic)
            let seen: ListPage<SegmentResult> = try await scene.api("GET", "/segments", headers: own).result()
            #expect(seen.items.map(\.name) == ["german", "shared"])
            #expect(seen.items.map(\.count) == [3, 3])
            let one: SegmentResult = try await scene.api("GET", "/segments/shared", headers: own).result()
            #expect(one.count == 3)
            for path in ["/segments/secret", "/segments/secret/members", "/segments/nothing", "/segments/secreta"] {
                let hidden = try await scene.api("GET", path, headers: own)
                #expect(hidden.status == 404)
                #expect(hidden.problem?.detail.hasSuffix("; import it first") == true, "\(path)")
            }
            let question = "{\"expression\": \"segment(\\\"secrets\\\")\", \"topic\": \"\(PipelineScene.topic)\"}"
            let counted = try await scene.api("POST", "/segments/count", body: question, headers: own)
            #expect(counted.status == 422)
            #expect(counted.problem?.detail == "no segment \"secrets\"; import it first")
            let visitor = try await scene.confinedVisitor(to: PipelineScene.topic)
            for path in ["/segments", "/segments?format=csv"] {
                let page = try await scene.page(path, headers: visitor)
                #expect(page.status == 200 && page.text.contains("shared") && !page.text.contains("secret"), "\(path)")
            }
            #expect(try await scene.page("/segments/secret", headers: visitor).status == 404)
            #expect(try await scene.page("/segments/shared", headers: visitor).text.contains("install-0"))
            let form = ["do": "count", "expression": "segment(\"secrets\")", "topic": PipelineScene.topic]
            let answered = try await scene.page("/segments", form: form, headers: visitor)
            #expect(answered.text.contains("import it first") && !answered.text.contains("did you mean"))
            let told = try await scene.api("POST", "/segments/count", body: question)
            #expect(told.problem?.detail == "no segment \"secrets\"; did you mean \"secret\"?")
        }
    }

    @Test(arguments: ["render", "test-send"])
    func `a device of another app is as if it were not there`(operation: String) async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try await Self.addDevices(scene, 10..<11, topic: Self.other)
            let own = try await scene.confined(to: PipelineScene.topic)
            let body = "{\"device\": \"install-10\", \"variables\": {\"title\": \"x\"}}"
            let answer = try await scene.api("POST", "/campaigns/new-podcast/\(operation)", body: body, headers: own)
            #expect(answer.status == 404)
            #expect(answer.problem?.detail.hasPrefix("no device \"install-10\" in the store") == true)
            let told = try await scene.api("POST", "/campaigns/new-podcast/\(operation)", body: body)
            #expect(told.problem?.detail.contains("is registered for \(Self.other)") == true)
        }
    }

    @Test func `another app's template is not read by naming it`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let text = try #require(scene.text(of: "campaigns/new-podcast.yaml"))
            let template = try #require(scene.text(of: "templates/new-podcast.yaml"))
            try scene.folder.write(template.replacing("new-podcast", with: "secret"), to: "templates/secret.yaml")
            let others = text.replacing(PipelineScene.topic, with: Self.other)
                .replacing("template: new-podcast", with: "template: secret")
                .replacing("campaign: new-podcast", with: "campaign: theirs")
            try scene.folder.write(others, to: "campaigns/theirs.yaml")
            let named = text.replacing("template: new-podcast", with: "template: secret")
            try #require(named != text)
            let own = try await scene.confined(to: PipelineScene.topic)
            let body = try JSONSerialization.data(withJSONObject: ["text": named])
            let json = String(decoding: body, as: UTF8.self)
            let path = "/campaigns/new-podcast/validate"
            #expect(try await scene.api("POST", path, body: json, headers: own).status == 404)
            #expect(try await scene.api("POST", path, body: json).status == 200)
            #expect(try await scene.api("GET", "/templates/secret", headers: own).status == 404)
            let near = try await scene.api("GET", "/templates/secre", headers: own)
            #expect(near.status == 404 && near.problem?.detail == "no template \"secre\"")
            let visitor = try await scene.confinedVisitor(to: PipelineScene.topic)
            let form = ["kind": "campaign", "file": "new-podcast", "text": named, "etag": ""]
            let page = try await scene.page("/campaigns/new-podcast/check", form: form, headers: visitor)
            #expect(page.status == 404)
        }
    }

    // MARK: Tables that people open

    @Test func `tables mark foreign texts that look like a formula`() async throws {
        try await WebScene.with { scene in
            let user = "=HYPERLINK(\"http://evil.example\")"
            let body: [String: Any] = [
                "token": String(repeating: "ab", count: 32), "environment": "production", "user_id": user,
            ]
            let json = String(decoding: try JSONSerialization.data(withJSONObject: body), as: UTF8.self)
            let made = try await scene.api("PUT", "/devices/\(PipelineScene.topic)/phone", body: json)
            #expect(made.status == 201, "\(made.text)")
            let table = try await scene.api("GET", "/devices?find=phone&format=csv")
            #expect(table.text.contains("\"'=HYPERLINK(\"\"http"))
            let plain: ListPage<DeviceResult> = try await scene.api("GET", "/devices?find=phone").result()
            #expect(plain.items.first?.userId == user)
            let exported = Collected()
            _ = try await scene.webConsole.cases.devices.export(
                matching: nil, topic: nil, to: nil, by: "test", now: scene.sending.clock.now, batch: exported.add)
            #expect(exported.text.contains("\"'=HYPERLINK("))
        }
    }
}

private final class Collected: Sendable {
    private let state = Mutex("")

    var text: String { state.withLock { $0 } }

    @Sendable func add(_ text: String) { state.withLock { $0 += text } }
}
