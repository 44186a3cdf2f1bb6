import APNs
import Logging
import LonePipeline
import Model
import Platform
import SQLiteStore
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A run that is late` {
    private let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    /// Begun, and given up before anything was sent.
    private func begun(_ scene: PipelineScene, _ definition: RunDefinition) async throws -> Run {
        let run = try await scene.start(definition)
        let end = try await scene.pipeline(transport).execute(run, as: "first") { control, _ in
            control.stop(.stopRequested)
        }
        #expect(end == .stoppedEarly)
        return run
    }

    @Test func `sends nothing until a person says so, and then what has expired ends as that`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let run = try await begun(scene, try scene.definition(.background) { $0.expiresAfter = .seconds(1800) })
        scene.clock.advance(by: .seconds(3601))
        for _ in 0..<2 {
            guard case .late(let reason) = try await scene.execute(run, transport) else {
                Issue.record("it went on")
                return
            }
            #expect(reason.contains("late_by_max is 1h; `fanfare resume \(run.id)` sends"))
        }
        #expect(transport.seen.isEmpty)
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, transport).isFinished)
        #expect(transport.seen.isEmpty)
        let report = try await scene.report(run)
        #expect(report.suppressed == [.init(status: 0, reason: "expired", count: 20)])
        #expect(report.attempts == 0)
    }

    @Test func `is in time while its sender was away for less than it may be`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let run = try await begun(scene, try scene.definition())
        scene.clock.advance(by: .seconds(3600))
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(try await scene.report(run).counts.accepted == 20)
    }

    @Test func `is neither late nor sent by a clock that is two hours ahead for seconds`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let run = try await begun(scene, try scene.definition())
        scene.clock.setWall(by: .seconds(7200))
        #expect(
            try await scene.execute(run, transport) == .waiting(until: scene.clock.now + ConfirmedTime.confirmedAfter))
        scene.clock.setWall(by: .seconds(-7200))
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(try await scene.report(run).counts.accepted == 20)
    }

    /// It is 2027-01-15T08:00 in UTC: five in the afternoon comes to Berlin at 16:00 UTC, to New York at 22:00.
    @Test func `waits for its next wave while nobody is there, and is late for one that is over`() async throws {
        let scene = try await PipelineScene.inZones()
        let run = try await scene.start(try scene.definitionInZones(.drop, unknown: .drop))
        let pipeline = scene.pipeline(transport)
        guard case .waiting = try await pipeline.execute(run, as: "a", idleLimit: .zero, watch: { _, _ in }) else {
            Issue.record("nothing waits")
            return
        }
        #expect(transport.seen.count == 1)
        // The afternoon goes by without a sender; at half past four Berlin's turn is half an hour ago.
        scene.clock.advance(by: .seconds(Int64(8.5 * 3600)))
        guard case .waiting = try await pipeline.execute(run, as: "b", idleLimit: .zero, watch: { _, _ in }) else {
            Issue.record("late before its time")
            return
        }
        #expect(transport.seen.count == 3)
        // At half past eleven New York's is an hour and a half ago.
        scene.clock.advance(by: .seconds(7 * 3600))
        let end = try await pipeline.execute(run, as: "c", idleLimit: .zero, watch: { _, _ in })
        guard case .late(let reason) = end else {
            Issue.record("\(end)")
            return
        }
        #expect(reason.hasPrefix("1 of 6 were due from 2027-01-15 22:00 UTC, and no process has sent since 16:30"))
        #expect(transport.seen.count == 3)
    }

    /// A sender that was suspended, or whose store was unavailable: by the machine's clocks, and by the processor's
    /// counter alone, as after the pause of a virtual machine.
    @Test(arguments: [false, true]) func `is late for its own sender that was away too long`(
        _ isPausedMachine: Bool
    ) async throws {
        let scene = try PipelineScene()
        let run = try await slowRun(scene)
        let end = try await away(scene, run, for: .seconds(3700), isPausedMachine)
        guard case .late(let reason) = end else {
            Issue.record("\(end)")
            return
        }
        #expect(reason.contains(" of 20 were due from 2027-01-15 08:00 UTC, and no process has sent since 08:00"))
        #expect(transport.seen.count == 1)
        let left = try #require(try await scene.store.run(run.id))
        #expect(left.state == .paused)
        #expect(left.halt == .late)
        #expect(left.owner == nil)
    }

    @Test func `goes on with its own sender that was away for less than it may be`() async throws {
        let scene = try PipelineScene()
        let run = try await slowRun(scene)
        #expect(try await away(scene, run, for: .seconds(3500), isStopped: true) == .stoppedEarly)
        #expect(try await scene.store.run(run.id)?.state == .running)
    }

    @Test func `is cancelled, not late, if it was cancelled while its sender was away`() async throws {
        let scene = try PipelineScene()
        let run = try await slowRun(scene)
        let end = try await away(scene, run, for: .seconds(3700)) {
            try await scene.store.change(run.id, to: .cancelled, reason: nil, now: scene.clock.now, by: "ray")
        }
        #expect(end == .cancelled)
        #expect(try await scene.report(run).counts.pending == 0)
    }

    /// A run that sends one push a minute, so that no lane wakes when a heartbeat does.
    private func slowRun(_ scene: PipelineScene) async throws -> Run {
        try await scene.addDevices(0..<20)
        return try await scene.start(try scene.definition { $0.pace = .init(pushesPerSecond: 1 / 60) })
    }

    /// Executes the run, and lets much time pass between two heartbeats.
    ///
    /// - Parameters:
    ///   - isPausedMachine: only the processor's counter shows the time, and no clock of the machine does.
    ///   - isStopped: stops the sender after a heartbeat.
    private func away(
        _ scene: PipelineScene, _ run: Run, for time: Duration, _ isPausedMachine: Bool = false,
        isStopped: Bool = false, meanwhile: @escaping @Sendable () async throws -> Void = {}
    ) async throws -> RunEnd {
        let passed = Mutex(Duration.zero)
        let manual = scene.clock
        let clock = WallClock(
            moment: {
                let time = UInt64(passed.withLock { $0 } / .nanoseconds(1))
                return BootMoment(nanoseconds: isPausedMachine ? 1 : time, counter: 1 + 3 * time, rate: 3)
            },
            now: { manual.now }, uptime: { manual.uptime }, sleep: { await manual.sleep($0) })
        let sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
            silentBudget: .init())
        let pipeline = LonePipeline(
            store: scene.store, sender: sender, clock: clock, jitter: { 0 }, logger: Logger(label: "test"))
        let control = Mutex<RunControl?>(nil)
        async let end = pipeline.execute(run, as: "own") { begun, _ in control.withLock { $0 = begun } }
        await manual.sleeper(atLeast: .seconds(50))
        passed.withLock { $0 = time }
        // Only the wall clock: a sleep of the lane would end with that of the heartbeat.
        if !isPausedMachine { manual.setWall(by: time) }
        try await meanwhile()
        // What is leased, and waits for its pace, is released first. That takes some heartbeats.
        async let driving: Void = manual.runBySeconds()
        if isStopped {
            while try await scene.store.run(run.id)?.heartbeatAt ?? run.createdAt < run.createdAt + time {
                await Task.yield()
            }
            control.withLock { $0 }?.stop(.stopRequested)
        }
        let result = try await end
        manual.release()
        await driving
        return result
    }
}
