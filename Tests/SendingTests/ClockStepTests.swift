import APNs
import Foundation
import Logging
import LonePipeline
import Model
import Platform
import Rendering
import SQLiteStore
@testable import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// Somebody sets the wall clock in the middle of a run.
@Suite(.timeLimit(.minutes(10))) struct `A wall clock that is set` {
    private static let hours = [Duration.seconds(3600), .seconds(-3600)]
    private let accepting = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    @Test(arguments: hours) func `neither stalls a paced run nor lets it run away, and is on record once`(
        step: Duration
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition { $0.pace = .init(pushesPerSecond: 10) })
        let (clock, start) = (scene.clock, scene.clock.uptime)
        let pipeline = scene.pipeline(accepting, lanes: 1, endpoints: [.production: .production])
        async let end = pipeline.execute(run, as: "test") { _, _ in }
        let isSet = Flag()
        async let driver: Void = clock.run(inShortStepsOf: .milliseconds(50)) {
            guard !isSet.isUp, accepting.seen.count >= 30 else { return }
            clock.setWall(by: step)
            isSet.raise()
        }
        #expect(try await end == .finished)
        let took = clock.uptime - start
        clock.release()
        await driver
        #expect(isSet.isUp && took >= .seconds(9) && took <= .seconds(900), "\(took)")
        let events = try await scene.store.events(run: nil, since: nil, limit: 100)
        #expect(events.count { $0.kind == EventKind.clockStepped.rawValue } == 1)
    }

    @Test(arguments: hours) func `leaves the wait for a retry as long as it was`(step: Duration) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1)
        let transport = ScriptedTransport { _, times in
            times == 0 ? ScriptedTransport.refused(429, .tooManyRequests) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        let (clock, start) = (scene.clock, scene.clock.uptime)
        async let end = scene.execute(run, transport)
        // For the retry. A lane that waits for the response sleeps for longer.
        await clock.sleeper(of: .seconds(30))
        clock.setWall(by: step)
        async let driver: Void = clock.runBySeconds()
        #expect(try await end == .finished)
        let took = clock.uptime - start
        clock.release()
        await driver
        #expect(took >= .seconds(29) && took < .seconds(1800), "\(took)")
    }

    /// For seconds: a typing error, or a bad answer of a time server.
    @Test func `two hours ahead while APNs answers 503 neither ends what is tried again nor puts it off`() async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let (clock, asked) = (scene.clock, Watched(0))
        let transport = ScriptedTransport { _, times in
            guard times == 0 else { return ScriptedTransport.accepted }
            let isFirst = asked.change { count in
                count += 1
                return count == 1
            }
            if isFirst { clock.setWall(by: .seconds(7200)) }
            return ScriptedTransport.refused(503, .serviceUnavailable)
        }
        let run = try await scene.start(try scene.definition { $0.expiresAfter = .seconds(3600) })
        let start = clock.uptime
        async let end = scene.execute(run, transport)
        await asked.until { $0 > 0 }
        // The breaker may hold back the rest of them.
        while try await scene.store.run(run.id)?.counts.leased == 20 { try await Task.sleep(for: .milliseconds(10)) }
        for _ in 0..<3 {
            await clock.sleeper(atLeast: .seconds(1))
            clock.advance(by: .seconds(1))
        }
        clock.setWall(by: .seconds(-7200))
        async let driver: Void = clock.runBySeconds()
        #expect(try await end == .finished)
        let took = clock.uptime - start
        clock.release()
        await driver
        #expect(try await scene.report(run).counts.accepted == 20)
        #expect(took < .seconds(1800), "\(took)")
    }

    /// Set between an answer and its record, and set back before anybody else has looked.
    @Test func `two hours ahead for a moment in which an answer is recorded puts no retry off`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1)
        let (definition, manual) = (try scene.definition(), scene.clock)
        let run = try await scene.start(definition)
        _ = try await scene.store.claim(run.id, by: "test", now: manual.now)
        let counts = try await scene.store.freeze(run.id, by: "test", now: manual.now) { _ in }
        // A reading looks twice at the wall clock: that of the answer is right, later ones are not.
        let looksLeft = Watched(Int.max)
        let clock = WallClock(
            boot: manual.clock.boot,
            now: {
                let isAhead = looksLeft.change { left in
                    left -= 1
                    return left < 0
                }
                return manual.now + (isAhead ? .seconds(7200) : .zero)
            }, uptime: { manual.uptime }, sleep: { _ in })
        let (high, low) = scene.store.namespace
        let progress = RunInProgress(
            record: run, owner: "test", renderers: try VariantRenderers(definition),
            ids: PushIDSpace(namespace: PushID(high: high, low: low)),
            control: RunControl(counts: counts, isFrozen: true),
            settlementPolicy: SettlementPolicy(definition, backoff: RetryWait { 0 }), latencies: LatencyRecorder(),
            store: scene.store, clock: clock,
            settlementClock: SettlementClock(
                store: scene.store, clock: clock, actor: "test", logger: Logger(label: "test")))
        _ = try await scene.store.noteClocks(clock.reading(), by: "test")
        func lease() async throws -> Lease {
            try await scene.store.lease(
                LeaseRequest(run: run.id, environment: .production, limit: 5, now: manual.now, owner: "test"))
        }
        let first = try await lease()
        let delivery = try #require(first.deliveries.first)
        looksLeft.change { $0 = 2 }
        let (isRecorded, _) = await progress.settle(
            [
                SettlementPolicy.Sent(
                    lease: first.id, device: delivery.device, generation: delivery.generation,
                    leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, excused: delivery.excused,
                    wave: delivery.wave, stage: delivery.stage, sentAt: manual.now)
            ], [PushCompletion(tag: 0, result: ScriptedTransport.refused(503, .serviceUnavailable))], in: .production)
        #expect(isRecorded)
        looksLeft.change { $0 = .max }
        _ = try await scene.store.noteClocks(clock.reading(), by: "test")
        manual.advance(by: .seconds(900))
        #expect(try await lease().deliveries.count == 1)
    }

    /// The sender that waits sees nothing of it, and the step ahead is on record.
    @Test func `ahead and back between two looks of a sender has it look at its waits within a minute`() async throws {
        let scene = try PipelineScene()
        let (store, manual) = (scene.store, scene.clock)
        var watch = ClockWatch(
            store: store, clock: manual.clock, actor: "test", logger: Logger(label: "test"))
        _ = await watch.look()
        manual.setWall(by: .seconds(7200))
        _ = try await store.noteClocks(manual.clock.reading(), by: "another")
        manual.setWall(by: .seconds(-7200))
        manual.advance(by: .seconds(1))
        let isSeenAtOnce = await watch.look()
        manual.advance(by: .seconds(60))
        let isSeen = await watch.look()
        #expect(!isSeenAtOnce && isSeen)
        let events = try await store.events(run: nil, since: nil, limit: 100)
        #expect(events.count { $0.kind == EventKind.clockStepped.rawValue } == 2)
    }

    @Test func `past the end of the quiet hours wakes those who waited for it`() async throws {
        let scene = try PipelineScene()
        var record = DeviceRecord(
            token: try #require(DeviceToken(bytes: PipelineScene.token(1))), environment: .production,
            topic: PipelineScene.topic)
        record.timeZone = "America/New_York"
        _ = try await scene.store.importDevices([record], now: scene.clock.now)
        let run = try await scene.start(
            try scene.definition { campaign in
                var schedule = Schedule(trigger: .none)
                schedule.unknownZone = .drop
                schedule.quietHours = .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: .defer)
                campaign.schedule = schedule
                campaign.expiresAfter = .seconds(20 * 3600)
            })
        let (clock, start) = (scene.clock, scene.clock.uptime)
        async let end = scene.execute(run, accepting)
        await clock.sleeper(atLeast: .seconds(300))
        clock.setWall(by: .seconds(5 * 3600))
        async let driver: Void = clock.runBySeconds(settlingWithin: .seconds(20))
        #expect(try await end == .finished)
        let took = clock.uptime - start
        clock.release()
        await driver
        // Once the step is confirmed, not after the ten minutes that are slept at a time.
        #expect(took >= ConfirmedTime.confirmedAfter && took < .seconds(570), "\(took)")
    }

    @Test func `is read together with the other clock, or read again`() {
        let readings = SharedReadings()
        let clock = WallClock(
            boot: "b", now: { Timestamp(seconds: 1000) }, uptime: { readings.next() }, sleep: { _ in })
        // Held up for a minute between the two at first.
        #expect(clock.reading().uptime == .seconds(160))
    }
}

private final class SharedReadings: Sendable {
    private let left = Watched([100, 100, 160, 160, 160].map { Duration.seconds($0) })

    func next() -> Duration { left.change { $0.count > 1 ? $0.removeFirst() : $0[0] } }
}
