import APNs
import Foundation
import GRDB
import Logging
import LonePipeline
import Model
import SQLiteStore
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

extension `A run in trouble` {
    @Test(arguments: [nil, "SomethingNew"])
    func `a host that answers 410 without saying why stops the run, and no device is gone`(reason: String?) async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2000)
        let run = try await scene.start(try scene.definition())
        let answer = PushResponse(status: 410, reason: reason.map { PushReason($0) })
        let retired = ScriptedTransport { _, _ in .answered(answer) }
        guard case .breakerOpen(let words) = try await scene.execute(run, retired) else {
            Issue.record("it went on")
            return
        }
        #expect(words.contains(reason ?? "status 410") && words.contains("endpoints.production"), "\(words)")
        let report = try await scene.report(run)
        #expect(report.counts.pending == report.counts.audience && report.devicesGone == 0)
        #expect(try await scene.store.deviceCounts().map(\.status) == [.active])
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, accepting) == .finished)
        #expect(try await scene.report(run).counts.accepted == 2000)
    }

    @Test func `far more devices gone than ever before: a person decides, and no device is changed before`()
        async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        let dead: @Sendable (Int) -> ScriptedTransport = { share in
            ScriptedTransport { push, _ in
                PipelineScene.number(push.token) % 100 < share
                    ? ScriptedTransport.refused(410, .unregistered) : ScriptedTransport.accepted
            }
        }
        // Usual for this campaign.
        let first = try await scene.start(try scene.definition(), occurrence: "first")
        #expect(try await scene.execute(first, dead(4)) == .finished)
        #expect(try await scene.report(first).devicesGone == 40)
        let run = try await scene.start(try scene.definition(), occurrence: "second")
        guard case .breakerOpen(let reason) = try await scene.execute(run, dead(30)) else {
            Issue.record("it ended as healthy")
            return
        }
        for word in ["too many devices are gone", "260 of 960", "8 %", "fanfare resume", "fanfare cancel"] {
            #expect(reason.contains(word), "\(reason)")
        }
        #expect(try await scene.report(run).devicesGone == 0)
        #expect(try await scene.execute(run, dead(30)) == .breakerOpen(reason))
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, dead(30)) == .finished)
        #expect(try await scene.report(run).devicesGone == 260)
    }

    @Test func `a small run may find all its devices gone`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<150)
        let run = try await scene.start(try scene.definition())
        let dead = ScriptedTransport { _, _ in ScriptedTransport.refused(410, .unregistered) }
        let words = "0 of 150 pushes were accepted: 150 were rejected, 0 ended unknown (success.min_accepted is 1)"
        #expect(try await scene.execute(run, dead) == .unsuccessful(words))
        #expect(try await scene.report(run).devicesGone == 150)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A token found gone` {
    /// The answer comes 10 s after the push has left; in between the app registers the token again.
    @Test(arguments: [
        (nil as Int64?, nil as Int64?, DeviceStatus.gone), (nil, 5000, .active), (1, nil, .gone),
        (-86_400_001, nil, .active),
        (-86_400_000, nil, .gone), (4999, 5000, .active), (5000, 5000, .gone), (5001, 5000, .gone),
    ])
    func `stays when it was registered since`(
        timestampMs: Int64?, registeredMs: Int64?, status: DeviceStatus
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1)
        let start = scene.clock.now
        let run = try await scene.start(try scene.definition())
        _ = try await scene.store.claim(run.id, by: "a", now: start)
        _ = try await scene.store.freeze(run.id, by: "a", now: start) { _ in }
        let lease = try await scene.store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 1, now: start, owner: "a"))
        let delivery = try #require(lease.deliveries.first)
        if let registeredMs {
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: delivery.token)), environment: .production,
                topic: PipelineScene.topic)
            record.installationID = "install-0"
            record.registeredAt = start + .milliseconds(registeredMs)
            _ = try await scene.store.importDevices([record], now: start)
        }
        let sent = SettlementPolicy.Sent(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, localeIndex: nil, sentAt: start)
        let result = ScriptedTransport.refused(
            410, .unregistered, timestamp: timestampMs.map { (start + .milliseconds($0)).milliseconds })
        let settlement = SettlementPolicy(run.definition, backoff: RetryWait(jitter: { 0 })).settlement(
            of: sent, result, OutcomePolicy.row(for: result), now: start + .seconds(10))
        _ = try await scene.store.settle(run: run.id, [settlement], now: start + .seconds(10))
        _ = try await scene.store.markGone(run: run.id, now: start + .seconds(10))
        let device = try #require(try await scene.store.devices(matching: "install-0").first)
        #expect(device.status == status)
        #expect(try await scene.report(run).devicesGone == (status == .gone ? 1 : 0))
    }
}
