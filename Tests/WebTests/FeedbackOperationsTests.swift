import Campaigns
import Foundation
import Model
import Platform
import SQLiteStore
import SendingScene
import Store
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
