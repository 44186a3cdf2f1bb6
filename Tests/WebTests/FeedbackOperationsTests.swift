import Campaigns
import Foundation
import Model
import Platform
import SQLiteStore
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Web

/// Apps report what became of pushes.
@Suite(.timeLimit(.minutes(10)))
struct FeedbackOperationsTests {
    private static func reference(_ scene: WebScene, run: Int64, device: Int64) throws -> String {
        let (high, low) = scene.store.namespace
        let key = PushReferenceKey(namespace: PushID(high: high, low: low))
        let texts = try #require(key.texts(of: [PushReference(run: run, device: device)]))
        return String(decoding: texts[0], as: UTF8.self)
    }

    private static func opened(_ reference: String, id: Int = 1, at: String? = nil, sentAt: String? = nil) -> String {
        let times = (at.map { ",\"at\":\"\($0)\"" } ?? "") + (sentAt.map { ",\"sent_at\":\"\($0)\"" } ?? "")
        return "{\"id\":\"00000000-0000-4000-8000-\(String(format: "%012d", id))\",\"type\":\"opened\","
            + "\"ref\":\"\(reference)\"\(times)}"
    }

    private static func started(_ scene: WebScene) async throws -> Run {
        try await scene.sending.addDevices(1..<4)
        return try await scene.sending.start(
            try scene.sending.definition { $0.feedback = CampaignFeedback() })
    }

    @Test func `reports are counted, and a bad one stops no other`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.started(scene)
            let references = try (1...3).map { try Self.reference(scene, run: run.id, device: $0) }
            let forged = String(references[0].reversed())
            let body = [
                Self.opened(references[0]), Self.opened(references[1]), Self.opened(references[1], id: 2),
                Self.opened(forged), "{\"id\":1}", Self.opened(String(repeating: "A", count: 22)),
            ].joined(separator: ",")
            let answer = try await scene.api("POST", "/events", as: .registrar, body: "[\(body)]")
            #expect(answer.status == 200)
            let result: FeedbackResult = try answer.result()
            #expect(result.recorded == 2 && result.repeated == 1 && result.rejectedCount == 3)
            #expect(result.rejected.map(\.line) == [4, 5, 6])
            #expect(result.rejected[0].reason.hasPrefix("ref is not the reference of a push of this app"))
            #expect(result.rejected[1].reason == "id is not a text")
            #expect(try await scene.store.feedbackCounts(ofRun: run.id).map(\.events).reduce(0, +) == 2)
        }
    }

    @Test func `a device's clock is corrected, and a report out of time is refused`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.started(scene)
            let reference = try Self.reference(scene, run: run.id, device: 1)
            let now = scene.sending.clock.now
            // A clock that is a year ahead, and a report of a minute before it was sent.
            let wrong = now + .seconds(365 * 86_400)
            let good = Self.opened(reference, at: (wrong - .seconds(60)).iso8601, sentAt: wrong.iso8601)
            let old = Self.opened(reference, id: 2, at: (now - .seconds(8 * 86_400)).iso8601)
            let ahead = Self.opened(reference, id: 3, at: (now + .seconds(700)).iso8601)
            let answer = try await scene.api(
                "POST", "/events", as: .registrar, body: [good, old, ahead].joined(separator: "\n"))
            let result: FeedbackResult = try answer.result()
            #expect(result.recorded == 1 && result.rejected.map(\.line) == [2, 3])
            #expect(result.rejected[0].reason.hasPrefix("the report is older than 7 days"))
            #expect(result.rejected[1].reason.hasPrefix("the report is more than 10 minutes in the future"))
        }
    }

    @Test func `only who registers devices may report, and only for its app`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.started(scene)
            let body = Self.opened(try Self.reference(scene, run: run.id, device: 1))
            let viewer = try await scene.api("POST", "/events", as: .viewer, body: body)
            #expect(viewer.status == 403)
            let unknown = ["Authorization": "Bearer unknown"]
            let stranger = try await scene.api("POST", "/events", body: body, headers: unknown)
            #expect(stranger.status == 401)
            #expect(try await scene.store.feedbackCounts(ofRun: run.id) == [])
        }
    }

    @Test func `an installation reports with a secret of its own, and only for itself`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.started(scene)
            let topic = run.definition.campaign.topic
            let path = "/devices/\(topic)/by-itself"
            let device = "{\"token\":\"\(String(repeating: "ab", count: 32))\",\"environment\":\"production\"}"
            let json = ["Content-Type": "application/json"]
            let silent = try await scene.api("PUT", path, as: .registrar, body: device, headers: json)
            #expect(!silent.text.contains("secret"))
            let wrong = try await scene.api("PUT", path + "?secret=old", as: .registrar, body: device, headers: json)
            #expect(wrong.status == 422)
            var secrets: [String] = []
            for _ in 1...2 {
                let answer = try await scene.api(
                    "PUT", path + "?secret=new", as: .registrar, body: device, headers: json)
                let result: RegistrationResult = try answer.result()
                secrets.append(try #require(result.secret))
            }
            let number = try await scene.store.devices(matching: "by-itself")[0].id
            let own =
                "{\"id\":\"00000000-0000-4000-8000-000000000001\",\"type\":\"app_started\","
                + "\"installation_id\":\"by-itself\",\"topic\":\"\(topic)\"}"
            let lines = [
                own, own.replacing("by-itself", with: "install-1"),
                Self.opened(try Self.reference(scene, run: run.id, device: number), id: 2),
                Self.opened(try Self.reference(scene, run: run.id, device: 1), id: 3),
            ]
            func send(_ body: String, _ secret: String) async throws -> WebScene.Answer {
                try await scene.api("POST", "/events", body: body, headers: ["Authorization": "Bearer \(secret)"])
            }
            // The second registration has replaced the first secret.
            #expect(try await send(own, secrets[0]).status == 401)
            let result: FeedbackResult = try await send(lines.joined(separator: "\n"), secrets[1]).result()
            #expect(result.rejected.map(\.line) == [2, 4], "\(result)")
            #expect(result.recorded == 2 && result.rejected[1].reason.contains("to this installation"))
            // A person can read the secret in the app, and report any value.
            let bought =
                "{\"id\":\"00000000-0000-4000-8000-000000000009\",\"type\":\"converted\",\"name\":\"bought\","
                + "\"value\":1000000000,\"installation_id\":\"by-itself\",\"topic\":\"\(topic)\"}"
            let valued: FeedbackResult = try await send(bought, secrets[1]).result()
            #expect(valued.recorded == 1 && valued.valuesIgnored == 1)
            let byBackend: FeedbackResult = try await scene.api(
                "POST", "/events", as: .registrar, body: bought.replacing("0009", with: "0008")
            ).result()
            #expect(byBackend.recorded == 1 && byBackend.valuesIgnored == nil)
            let values = Mutex<[Int64?]>([])
            try await scene.store.feedback(
                receivedIn: Timestamp(milliseconds: 0)..<scene.sending.clock.now + .seconds(60)
            ) { batch in
                values.withLock { $0 += batch.filter { $0.kind == .converted }.map(\.valueMicros) }
            }
            #expect(values.withLock { $0.compactMap(\.self) } == [1_000_000_000_000_000])
            // The secret is good for nothing else.
            for (method, other) in [("GET", "/devices?find=by-itself"), ("PUT", path), ("GET", "/runs")] {
                let answer = try await scene.api(
                    method, other, body: device, headers: ["Authorization": "Bearer \(secrets[1])"])
                #expect(answer.status == 403, "\(other)")
            }
            let many = Array(repeating: own, count: 101).joined(separator: "\n")
            #expect(try await send(many, secrets[1]).status == 422)
            var statuses: [Int] = []
            for _ in 1...30 { statuses.append(try await send(own, secrets[1]).status) }
            #expect(statuses.prefix(27).allSatisfy { $0 == 200 } && statuses.last == 429)
        }
    }

    @Test func `no body breaks the operation`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.started(scene)
            let good = Self.opened(
                try Self.reference(scene, run: run.id, device: 1), at: "2027-01-15T08:00:00Z",
                sentAt: "2027-01-15T08:00:05Z")
            var generator = SeededGenerator(seed: 7)
            let pieces = [
                "[", "]", "{", "}", ",", ":", "\"", "\\u00", "\n", "null", "-1e999", "\u{0}", "é", "\"ref\":",
            ]
            .map { Array($0.utf8) }
            var statuses: [Int: Int] = [:]
            for round in 1...1_500 {
                var body = Array((round.isMultiple(of: 2) ? "[\(good),\(good)]" : "\(good)\n\(good)").utf8)
                for _ in 0..<Int.random(in: 1...6, using: &generator) {
                    let place = Int.random(in: 0...body.count, using: &generator)
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0:
                        let piece = pieces[Int.random(in: pieces.indices, using: &generator)]
                        body.insert(contentsOf: piece, at: place)
                    case 1:
                        let end = min(body.count, place + Int.random(in: 0...9, using: &generator))
                        body.removeSubrange(place..<end)
                    case 2: if place < body.count { body[place] = UInt8.random(in: 0...255, using: &generator) }
                    default: body.insert(contentsOf: body.suffix(from: place).prefix(30), at: place)
                    }
                }
                let answer = try await scene.api(
                    "POST", "/events", as: .registrar, body: String(decoding: body, as: UTF8.self))
                statuses[answer.status, default: 0] += 1
            }
            #expect(Set(statuses.keys).isSubset(of: [200, 422]), "\(statuses)")
            #expect(statuses[200] ?? 0 > 100 && statuses[422] ?? 0 > 100, "\(statuses)")
            #expect(try await scene.store.feedbackCounts(ofRun: run.id).map(\.events).reduce(0, +) == 1)
        }
    }

    @Test func `a body that is too long, too many or no gzip is refused as a whole`() async throws {
        try await WebScene.with { scene in
            let many = String(repeating: "{}\n", count: RecordFeedback.reportsMax + 1)
            let tooMany = try await scene.api("POST", "/events", as: .registrar, body: many)
            #expect(tooMany.status == 422)
            let long = "{\"id\":\"" + String(repeating: "x", count: RecordFeedback.bytesMax) + "\"}"
            let tooLong = try await scene.api("POST", "/events", as: .registrar, body: long)
            #expect(tooLong.status == 413)
            let broken = try await scene.api("POST", "/events", as: .registrar, body: "[{}")
            #expect(broken.status == 422)
        }
    }

    @Test func `gzip is unpacked up to the limit`() throws {
        let text = Array(String(repeating: "{\"id\":1}\n", count: 1_000).utf8)
        let packed = try #require(GzipResponses.gzip(text))
        #expect(Gunzip.bytes(packed, max: text.count) == .whole(text))
        #expect(Gunzip.bytes(packed, max: text.count - 1) == .tooLarge)
        #expect(Gunzip.bytes(Array(packed.dropLast(9)), max: text.count) == .broken)
        #expect(Gunzip.bytes(packed + [0], max: text.count) == .broken)
        #expect(Gunzip.bytes(text, max: text.count) == .broken)
        #expect(Gunzip.bytes([], max: 10) == .broken)
    }
}
