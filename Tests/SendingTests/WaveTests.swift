import APNs
import Foundation
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// Runs that follow each device's own clock. It is 2027-01-15T08:00 in UTC: 17:00 in Tokyo, 9 in Berlin, 3 in New York.
@Suite(.timeLimit(.minutes(10))) struct `Waves` {
    /// Carries the run out and moves the clock from one sleep to the next, to learn when who got theirs.
    private func times(_ scene: PipelineScene, _ run: Run) async throws -> [String] {
        let sent = Mutex<[String]>([])
        let clock = scene.clock
        let transport = ScriptedTransport { push, _ in
            let zone = PipelineScene.zones[PipelineScene.number(push.token)] ?? "unknown"
            sent.withLock { $0.append("\(clock.now.iso8601.dropFirst(8).prefix(8)) \(zone)") }
            return ScriptedTransport.accepted
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            // One lane alone, so that nobody sleeps while another one sends.
            let pipeline = scene.pipeline(transport, lanes: 1, leaseMax: 2, endpoints: [.production: .production])
            group.addTask { _ = try await pipeline.execute(run, as: "test") { _, _ in } }
            group.addTask {
                await clock.run(inStepsOf: .seconds(600), forSleepsOf: .seconds(600))
            }
            try await group.next()
            clock.release()
            try await group.waitForAll()
        }
        for entry in transport.seen {
            let wave = try #require(entry.headers.expiration) - 4 * 3600
            #expect(wave <= clock.now.seconds)
        }
        return sent.withLock { $0.sorted() }
    }

    @Test func `leave one after the other, each at its own time`() async throws {
        let scene = try await PipelineScene.inZones()
        let run = try await scene.start(try scene.definitionInZones(.nextDay))
        #expect(
            try await times(scene, run) == [
                "15T08:00 Asia/Tokyo", "15T11:30 unknown", "15T16:00 Europe/Berlin", "15T16:00 Europe/Paris",
                "15T22:00 America/New_York", "16T04:00 Pacific/Apia",
            ])
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 6)
    }

    @Test func `drop who is over and who has no zone, with the reason on record`() async throws {
        let scene = try await PipelineScene.inZones()
        let run = try await scene.start(try scene.definitionInZones(.drop, unknown: .drop))
        #expect(try await times(scene, run).count == 4)
        let report = try await scene.report(run)
        #expect(
            Dictionary(uniqueKeysWithValues: report.suppressed.map { ($0.reason, $0.count) }) == [
                "late": 1, "unknown_zone": 1,
            ])
    }

    @Test func `wait for the end of the quiet hours where it is night`() async throws {
        let scene = try await PipelineScene.inZones()
        let quiet = Schedule.QuietHours(fromMinute: 21 * 60, toMinute: 8 * 60, policy: .defer)
        let run = try await scene.start(try scene.definitionInZones(.sendNow, quiet: quiet))
        // Apia's turn was four hours ago, and there it is 21:00: it would have to wait longer than its push lives.
        #expect(
            try await times(scene, run) == [
                "15T08:00 Asia/Tokyo", "15T11:30 unknown", "15T16:00 Europe/Berlin", "15T16:00 Europe/Paris",
                "15T22:00 America/New_York",
            ])
        #expect(try await scene.report(run).suppressed.map(\.reason) == ["quiet_hours"])
    }
}
