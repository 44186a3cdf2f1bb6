import APNs
import Campaigns
import Model
import SQLiteStore
import Sending
import SendingScene
import TestSupport
import Testing

@testable import Store

/// The history of one device, made by the real pipeline and store.
@Suite(.timeLimit(.minutes(10)))
struct ExplanationTests {
    private func explanation(_ scene: PipelineScene, device: Int64 = 1) async throws -> Explanation {
        let history = try #require(try await scene.store.history(ofDevice: device))
        return Explanation(history, budget: .init(limit: 3, window: .seconds(3600)), now: scene.clock.now)
    }

    @Test func `each run has a sentence, in the order of time`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        let registered = scene.clock.now - .seconds(86_400)
        let first = try await scene.start(try scene.definition())
        #expect(try await scene.execute(first, ScriptedTransport { _, _ in ScriptedTransport.accepted }) == .finished)
        scene.clock.advance(by: .seconds(60))
        let held = try await scene.start(try scene.definition { $0.holdoutPercent = 100 }, occurrence: "held")
        _ = try await scene.execute(held, ScriptedTransport { _, _ in ScriptedTransport.accepted })
        #expect(try await scene.store.run(held.id)?.state == .finished)
        scene.clock.advance(by: .seconds(60))
        let elsewhere = try await scene.start(
            try scene.definition { $0.audience = Audience(source: "", expression: .not(.everyone)) }, occurrence: "none"
        )
        _ = try await scene.execute(elsewhere, ScriptedTransport { _, _ in ScriptedTransport.accepted })
        scene.clock.advance(by: .seconds(60))
        let gone = try await scene.start(try scene.definition(), occurrence: "gone")
        let since = scene.clock.now - .seconds(5)
        let answer = ScriptedTransport.refused(410, .unregistered, timestamp: since.milliseconds)
        _ = try await scene.execute(gone, ScriptedTransport { _, _ in answer })
        #expect(try await scene.store.run(gone.id)?.state == .finished)
        let told = try await explanation(scene)
        #expect(
            told.lines.map(\.text) == [
                "last registered, with token …00000001 (production)",
                "c: accepted by APNs",
                "held out by c, for comparison with devices that got the push",
                "not in the audience of c: the device's present data do not meet `not everyone`",
                "token gone since \(since.iso8601) (410 Unregistered, inactive since then); learned from c, run \(gone.id)",
                "c: rejected by APNs: 410 Unregistered",
            ])
        #expect(told.lines[0].at == registered)
        #expect(told.lines.map(\.at) == told.lines.map(\.at).sorted())
        #expect(told.now.first?.hasPrefix("gone") == true)
    }

    @Test func `a push that waited for a slot of its silent budget says so, while it waits and afterwards`()
        async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        for number in 1...3 {
            let run = try await scene.start(try scene.definition(.background), occurrence: "\(number)")
            _ = try await scene.execute(run, ScriptedTransport { _, _ in ScriptedTransport.accepted })
        }
        let slot = scene.clock.now + .seconds(3600)
        let fourth = try await scene.start(try scene.definition(.background), occurrence: "4")
        _ = try await scene.store.claim(fourth.id, by: "x", now: scene.clock.now)
        _ = try await scene.store.freeze(fourth.id, by: "x", now: scene.clock.now) { _ in }
        let request = LeaseRequest(
            run: fourth.id, environment: .production, limit: 10, now: scene.clock.now, owner: "x",
            silentBudget: .init(limit: 3, window: .seconds(3600)))
        #expect(try await scene.store.lease(request).deliveries.isEmpty)
        let waiting = try await explanation(scene)
        #expect(waiting.lines.last?.text == "c: waits for a slot of its silent budget until \(slot.iso8601)")
        #expect(
            waiting.now.last
                == "silent budget: 3 of 3 background pushes used in 1h; the next push may be sent at \(slot.iso8601)")
        try await scene.store.release(fourth.id, by: "x", state: .running, reason: nil, now: scene.clock.now)
        scene.clock.advance(by: .seconds(3600))
        #expect(try await scene.execute(fourth, ScriptedTransport { _, _ in ScriptedTransport.accepted }) == .finished)
        let sent = try await explanation(scene)
        #expect(
            sent.lines.last?.text
                == "c: waited for a slot of its silent budget until \(slot.iso8601), then accepted by APNs")
    }

    @Test func `a push whose answer was lost before may have arrived, whatever its end is`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        let transport = ScriptedTransport { _, times in
            times == 0 ? .unknown(.deadline) : ScriptedTransport.refused(413, .payloadTooLarge)
        }
        let refused = try await scene.start(try scene.definition())
        #expect(try await scene.execute(refused, transport).isFinished)
        let mayHaveArrived = "; an earlier response was lost: the push may have arrived"
        let told = try await explanation(scene).lines.last?.text
        #expect(told == "c: rejected by APNs: 413 PayloadTooLarge, at attempt 2\(mayHaveArrived)")
        let cancelled = try await scene.start(try scene.definition(), occurrence: "cancelled")
        let now = scene.clock.now + .seconds(60)
        _ = try await scene.store.claim(cancelled.id, by: "x", now: now)
        _ = try await scene.store.freeze(cancelled.id, by: "x", now: now) { _ in }
        let lease = try await scene.store.lease(
            LeaseRequest(run: cancelled.id, environment: .production, limit: 10, now: now, owner: "x"))
        let sent = try #require(lease.deliveries.first)
        let lost = Settlement(
            lease: lease.id, device: sent.device, generation: sent.generation, leaseNumber: sent.leaseNumber,
            attempt: sent.attempt, verdict: .retry(notBefore: now), isInDoubt: true, reason: "DeadlineExceeded")
        _ = try await scene.store.settle(run: cancelled.id, [lost], now: now)
        try await scene.store.release(cancelled.id, by: "x", state: .cancelled, reason: nil, now: now)
        let last = try await explanation(scene).lines.last?.text
        #expect(last == "c: not sent again: the run was cancelled\(mayHaveArrived)")
    }

    @Test func `how a device stands under each frequency cap is told`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        var history = try #require(try await scene.store.history(ofDevice: 1))
        let now = scene.clock.now
        history.cappedPushes = [
            .init(pushClass: "news", settledAt: now - .seconds(600), isOwn: true),
            .init(pushClass: "news", settledAt: now - .seconds(60), isOwn: false),
        ]
        let caps = [
            FrequencyCap(limit: 1, window: .seconds(3600)),
            FrequencyCap(limit: 5, window: .seconds(3600), per: .user, classes: ["news"]),
            FrequencyCap(limit: 3, window: .seconds(3600), per: .user, reserve: ["security": 1]),
        ]
        let told = Explanation(history, budget: nil, caps: caps, now: now)
        #expect(
            told.now.suffix(3) == [
                "frequency cap of 1 in 1h per device: 1 used; the next push may be sent at \((now + .seconds(3000)).iso8601)",
                "frequency cap of 5 in 1h per user (news): 2 used",
                "frequency cap of 3 in 1h per user: 2 used; the next push may be sent at \((now + .seconds(3000)).iso8601), "
                    + "except for the class security",
            ])
    }

    @Test func `a token that was replaced is told, also to whoever knows only the old one`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(1..<2)
        let old = try #require(DeviceToken(bytes: PipelineScene.token(1)))
        var record = DeviceRecord(
            token: try #require(DeviceToken(bytes: PipelineScene.token(9))), environment: .production,
            topic: PipelineScene.topic)
        record.installationID = "install-1"
        record.registeredAt = scene.clock.now + .seconds(10)
        _ = try await scene.store.importDevices([record], now: scene.clock.now + .seconds(10))
        let device = try #require(try await scene.store.device(thatHad: old))
        #expect(
            try await explanation(scene, device: device.id).lines.map(\.text) == [
                "token …00000001 replaced by …00000009",
                "last registered, with token …00000009 (production)",
            ])
    }
}
