import APNs
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `Quiet hours of a run` {
    /// It is 2027-01-15T08:00:00Z: 9 in Berlin, 3 in New York.
    private func scene() async throws -> PipelineScene {
        let scene = try PipelineScene()
        for (number, zone) in ["Europe/Berlin", "America/New_York", "America/New_York"].enumerated() {
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.installationID = "install-\(number)"
            record.timeZone = zone
            _ = try await scene.store.importDevices([record], now: scene.clock.now)
        }
        return scene
    }

    private func definition(
        _ scene: PipelineScene, _ policy: Schedule.QuietHours.Policy, expiresAfter: Duration
    ) throws -> RunDefinition {
        try scene.definition { campaign in
            var schedule = Schedule(trigger: .none)
            schedule.unknownZone = .drop
            schedule.quietHours = .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: policy)
            campaign.schedule = schedule
            campaign.expiresAfter = expiresAfter
        }
    }

    @Test func `who sleeps gets theirs in the morning`() async throws {
        let scene = try await scene()
        let sent = Watched(0)
        let transport = ScriptedTransport { _, _ in
            sent.change { $0 += 1 }
            return ScriptedTransport.accepted
        }
        let run = try await scene.start(try definition(scene, .defer, expiresAfter: .seconds(8 * 3600)))
        async let end = scene.execute(run, transport)
        // One lane may sleep before the other one has sent.
        await sent.until { $0 > 0 }
        await scene.clock.sleeper(atLeast: .seconds(20))
        #expect(transport.seen.map { PipelineScene.number($0.push.token) } == [0])
        scene.clock.advance(by: .seconds(5 * 3600))
        #expect(try await end == .finished)
        #expect(Set(transport.seen.map { PipelineScene.number($0.push.token) }) == [0, 1, 2])
        #expect(try await scene.report(run).counts.accepted == 3)
    }

    @Test(arguments: [(Schedule.QuietHours.Policy.drop, 8), (.defer, 5)])
    func `drop, or a morning too late, leaves them out`(
        policy: Schedule.QuietHours.Policy, expiresAfterHours: Int
    ) async throws {
        let scene = try await scene()
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let definition = try definition(scene, policy, expiresAfter: .seconds(expiresAfterHours * 3600))
        let run = try await scene.start(definition)
        #expect(try await scene.execute(run, transport) == .finished)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 1)
        #expect(report.suppressed == [.init(status: 0, reason: "quiet_hours", count: 2)])
    }
}
