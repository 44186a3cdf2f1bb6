import APNs
import Logging
import Model
import Platform
import SQLiteStore
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Sending

/// The heartbeats of a run before and after a gap, without its lanes.
@Suite(.timeLimit(.minutes(10))) struct `A gap between heartbeats` {
    private let scene: PipelineScene
    private let passed = Passed()

    init() throws { scene = try PipelineScene() }

    /// The responses to pushes on the wire are read after the gap, and may complete the run.
    @Test(arguments: [true, false]) func `is judged when the responses of before the gap are recorded, or stay out`(
        _ isAnswered: Bool
    ) async throws {
        let (run, control, lease) = try await leased()
        try await heartbeat(of: run, control).beat {
            await scene.clock.sleeper(of: .seconds(1))
            go(by: .seconds(3700))
            try await beats(3)
            #expect(try await scene.store.run(run)?.state == .running)
            if isAnswered { try await settle(lease, of: run, control) }
            try await beats(9)
        }
        let left = try #require(try await scene.store.run(run))
        #expect(left.halt == (isAnswered ? nil : .late) && left.state == (isAnswered ? .running : .paused))
        #expect(control.decision.reason == (isAnswered ? nil : .stateChanged(.paused)))
    }

    /// The store takes nothing during the gap, so the lanes offer their responses again only some seconds after it.
    @Test func `is judged when the store has had time to take the responses`() async throws {
        let (run, control, lease) = try await leased()
        let lock = WriteLock(scene.folder.file("store.sqlite"))
        try await heartbeat(of: run, control).beat {
            await scene.clock.sleeper(of: .seconds(1))
            try lock.take()
            go(by: .seconds(3700))
            // The last of these claims the run, and is refused.
            try await beats(11)
            try lock.release()
            try await beats(6)
            #expect(control.decision.reason == nil)
            try await settle(lease, of: run, control)
            try await beats(9)
        }
        #expect(control.decision.reason == nil)
        #expect(try await scene.store.run(run)?.state == .running)
    }

    @Test func `of a few seconds makes no run late, however soon it may be late`() async throws {
        let (run, control) = try await begun { campaign in
            var schedule = Schedule(trigger: .none)
            schedule.lateByMax = .seconds(1)
            campaign.schedule = schedule
        }
        try await heartbeat(of: run, control, lateByMax: .seconds(1)).beat {
            for _ in 0..<3 {
                await scene.clock.sleeper(of: .seconds(1))
                go(by: .seconds(5))
                try await beats(1)
            }
        }
        #expect(control.decision.reason == nil)
        #expect(try await scene.store.run(run)?.state == .running)
    }

    private func begun(_ change: (inout Campaign) -> Void = { _ in }) async throws -> (run: Int64, RunControl) {
        try await scene.addDevices(0..<20)
        let run = try await scene.start(try scene.definition(change: change)).id
        #expect(try await scene.store.claim(run, by: "own", now: scene.clock.now) == .claimed)
        let counts = try await scene.store.freeze(run, by: "own", now: scene.clock.now) { _ in }
        return (run, RunControl(counts: counts, isFrozen: true))
    }

    private func leased() async throws -> (run: Int64, RunControl, Lease) {
        let (run, control) = try await begun()
        let lease = try await scene.store.lease(
            LeaseRequest(run: run, environment: .production, limit: 20, now: scene.clock.now, owner: "own"))
        #expect(control.beginLease(in: .production))
        control.progress.tookLease(lease.deliveries.count)
        return (run, control, lease)
    }

    private func settle(_ lease: Lease, of run: Int64, _ control: RunControl) async throws {
        let settlements = lease.deliveries.map { Settlement(acceptanceOf: $0, lease: lease.id) }
        let counts = try await scene.store.settle(run: run, settlements, now: scene.clock.now)
        control.progress.recorded(counts, settled: settlements.count)
    }

    private func heartbeat(of run: Int64, _ control: RunControl, lateByMax: Duration = .seconds(3600)) -> Heartbeat {
        let clock = WallClock(
            moment: { [passed] in
                let time = UInt64(passed.time / .nanoseconds(1))
                return BootMoment(nanoseconds: time, counter: 1 + 3 * time, rate: 3)
            },
            now: { [clock = scene.clock] in clock.now }, uptime: { [clock = scene.clock] in clock.uptime },
            sleep: { [clock = scene.clock] in await clock.sleep($0) })
        return Heartbeat(
            store: scene.store, run: run, campaign: "c", lateByMax: lateByMax, owner: "own", control: control,
            clock: clock, logger: Logger(label: "test"), takeoverHook: TakeoverHook {})
    }

    /// Lets time pass without a heartbeat.
    private func go(by time: Duration) {
        passed.add(time)
        scene.clock.setWall(by: time)
    }

    /// Lets heartbeats come, one a second.
    private func beats(_ count: Int) async throws {
        for _ in 0..<count {
            await scene.clock.sleeper(of: .seconds(1))
            passed.add(.seconds(1))
            scene.clock.advance(by: .seconds(1))
            await scene.clock.sleeper(of: .seconds(1))
        }
    }
}

/// The time that the machine's boot clock and the processor's counter show.
private final class Passed: Sendable {
    private let sum = Mutex(Duration.zero)

    var time: Duration { sum.withLock { $0 } }

    func add(_ time: Duration) { sum.withLock { $0 += time } }
}

extension Settlement {
    fileprivate init(acceptanceOf delivery: LeasedDelivery, lease: Int64) {
        self.init(
            lease: lease, device: delivery.device, generation: delivery.generation, leaseNumber: delivery.leaseNumber,
            attempt: delivery.attempt, verdict: .accepted, status: 200, reason: nil, localeIndex: 0, effect: .none,
            stage: delivery.stage)
    }
}
