import APNs
import Logging
import LonePipeline
import Model
import Platform
import Rendering
import SQLiteStore
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `Runs that share lanes` {
    private let scene: PipelineScene
    private let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    init() throws {
        scene = try PipelineScene()
    }

    private func laneGroup(lanes: Int, leaseMax: Int = 10, paces: [SharedPace] = []) -> LaneGroup {
        var sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: lanes,
            silentBudget: .init())
        sender.leaseMax = leaseMax
        sender.paces = paces
        return LaneGroup(
            sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
    }

    private func start(_ name: String, _ priority: PushPriority) async throws -> Run {
        try await scene.start(
            try scene.definition {
                $0.name = name
                $0.priority = priority
            })
    }

    /// Carries all of them out; the lanes begin when everybody's audience is written down.
    private func execute(
        _ runs: [Run], _ lanes: LaneGroup, devices: Int,
        watch: @escaping @Sendable (Run, RunControl) -> Void = { _, _ in }
    ) async throws -> [String: RunEnd] {
        let controls = Controls()
        let pipeline = Pipeline(
            store: scene.store, lanes: lanes, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        return try await withThrowingTaskGroup(of: (String, RunEnd)?.self) { group in
            for run in runs {
                group.addTask {
                    let end = try await pipeline.execute(run, as: "test") { control, _ in
                        controls.add(control)
                        watch(run, control)
                    }
                    return (run.campaign, end)
                }
            }
            group.addTask {
                await controls.ready(runs.count, devices)
                await lanes.run()
                return nil
            }
            var ends: [String: RunEnd] = [:]
            while ends.count < runs.count, let answer = try await group.next() {
                if let (name, end) = answer { ends[name] = end }
            }
            lanes.close()
            try await group.waitForAll()
            return ends
        }
    }

    @Test(arguments: [(PushPriority.considerate, 50...180), (.lowest, 10...90), (.immediate, 350...500)])
    func `get them by their priority, and nobody starves`(other: PushPriority, share: ClosedRange<Int>) async throws {
        try await scene.addDevices(0..<500)
        let runs = [try await start("slow", other), try await start("urgent", .immediate)]
        let ends = try await execute(runs, laneGroup(lanes: 1), devices: 500)
        #expect(ends == ["slow": .finished, "urgent": .finished])
        let names = transport.seen.map { $0.headers.collapseID?.hasPrefix("urgent") == true }
        #expect(names.count == 1000)
        let first = try #require(names.firstIndex(of: true))
        let last = try #require(names.lastIndex(of: true))
        #expect(share.contains(names[first...last].count { !$0 }))
        for run in runs { #expect(try await scene.report(run).counts.accepted == 500) }
    }

    /// A run as its lanes see it, claimed and frozen, for `count` of the devices.
    private func member(
        _ name: String, of count: Int, expiry: Expiry? = nil, trustWindow: Duration? = nil
    ) async throws -> (run: RunInProgress, source: LeaseSource) {
        let definition = try scene.definition { campaign in
            campaign.name = name
            campaign.audience.expression = .oneOf(.installationID, (0..<count).map { .text("install-\($0)") })
        }
        let run = try await scene.start(definition)
        _ = try await scene.store.claim(run.id, by: "test", now: scene.clock.now)
        let counts = try await scene.store.freeze(run.id, by: "test", now: scene.clock.now) { _ in }
        let (high, low) = scene.store.namespace
        let clock = scene.clock.clock
        let control = RunControl(counts: counts, isFrozen: true, trustWindow: trustWindow)
        let source = LeaseSource(
            store: scene.store,
            template: LeaseRequest(
                run: run.id, environment: .production, limit: 5, now: scene.clock.now, owner: "test", expiry: expiry),
            control: control, pacer: nil, breaker: EndpointBreaker(endpoint: "a", jitter: { 0 }), clock: clock)
        let progress = RunInProgress(
            record: run, owner: "test", renderers: try VariantRenderers(definition),
            ids: PushIDSpace(namespace: PushID(high: high, low: low)), control: control,
            settlementPolicy: SettlementPolicy(definition, backoff: RetryWait { 0 }), latencies: LatencyRecorder(),
            store: scene.store, clock: clock,
            settlementClock: SettlementClock(
                store: scene.store, clock: clock, actor: "test", logger: Logger(label: "test")))
        return (progress, source)
    }

    @Test func `nothing is leased while nothing may start, since all of it would start at once later`() async throws {
        try await scene.addDevices(0..<5)
        let (run, source) = try await member("held", of: 5, trustWindow: .seconds(3_600))
        source.control.trust.lapse()
        guard case .nothing(_, let until) = await source.next(atMost: 5) else {
            Issue.record("the source has leased")
            return
        }
        #expect(until.map { $0 > scene.clock.now } ?? false)
        #expect(try await scene.store.run(run.record.id)?.counts.leased == 0)
        source.control.renewTrust(from: .now())
        guard case .lease(let lease) = await source.next(atMost: 5) else {
            Issue.record("the source does not lease")
            return
        }
        #expect(lease.deliveries.count == 5)
    }

    /// The runs of the next leases, whose pushes are to go again a minute later.
    private func served(_ scheduler: FairScheduler, _ count: Int) async throws -> [String] {
        var names: [String] = []
        for _ in 0..<count {
            let next = try #require(await scheduler.next(atMost: 5, waitingAtMost: .zero))
            names.append(next.run.campaign.name)
            let due = scene.clock.now + .seconds(60)
            let settlements = next.lease.deliveries.map {
                Settlement(
                    lease: next.lease.id, device: $0.device, generation: $0.generation, leaseNumber: $0.leaseNumber,
                    attempt: $0.attempt, verdict: .retry(notBefore: due), status: 503)
            }
            _ = try await scene.store.settle(run: next.run.id, settlements, now: scene.clock.now)
        }
        return names
    }

    @Test func `one that rested, or comes later, does not catch up on the others`() async throws {
        try await scene.addDevices(0..<400)
        let scheduler = FairScheduler(
            .production, breaker: EndpointBreaker(endpoint: "a", jitter: { 0 }), clock: scene.clock.clock,
            changed: Signal(), stopped: Signal())
        let (busy, resting) = (try await member("busy", of: 400), try await member("resting", of: 40))
        scheduler.join(busy.run, busy.source)
        scheduler.join(resting.run, resting.source)
        #expect(try await served(scheduler, 16).count { $0 == "resting" } == 8)
        #expect(try await served(scheduler, 40).allSatisfy { $0 == "busy" })
        scene.clock.advance(by: .seconds(61))
        #expect((3...5).contains(try await served(scheduler, 8).count { $0 == "resting" }))
        let late = try await member("late", of: 100)
        scheduler.join(late.run, late.source)
        #expect((2...6).contains(try await served(scheduler, 12).count { $0 == "late" }))
    }

    @Test func `one with nothing but rows to put aside lets the others go in between`() async throws {
        try await scene.addDevices(0..<400)
        let scheduler = FairScheduler(
            .production, breaker: EndpointBreaker(endpoint: "a", jitter: { 0 }), clock: scene.clock.clock,
            changed: Signal(), stopped: Signal())
        let over = Expiry(plannedAt: scene.clock.now - .seconds(60), after: .seconds(1))
        let expired = try await member("expired", of: 400, expiry: over)
        let urgent = try await member("urgent", of: 100)
        scheduler.join(expired.run, expired.source)
        scheduler.join(urgent.run, urgent.source)
        var left = DeliveryCounts()
        // Either may be asked first.
        for _ in 0..<4 where left.suppressed == 0 {
            let lease = try #require(await scheduler.next(atMost: 5, waitingAtMost: .zero))
            #expect(lease.run.campaign.name == "urgent")
            left = try #require(try await scene.store.run(expired.run.id)).counts
        }
        #expect(left.suppressed > 0 && left.suppressed <= 2 * 5 * LeaseRound.transactionsMax, "\(left)")
        // A pause is obeyed at the next call, however much is left.
        expired.run.control.stop(.stateChanged(.paused))
        let second = try #require(await scheduler.next(atMost: 5, waitingAtMost: .zero))
        #expect(second.run.campaign.name == "urgent")
        #expect(try await scene.store.run(expired.run.id)?.counts.suppressed == left.suppressed)
    }

    @Test func `one that is stopped takes nothing from the other`() async throws {
        try await scene.addDevices(0..<500)
        let runs = [try await start("stopped", .immediate), try await start("whole", .immediate)]
        let lanes = laneGroup(lanes: 2)
        let ends = try await execute(runs, lanes, devices: 500) { run, control in
            if run.campaign == "stopped" { control.stop(.stopRequested) }
        }
        #expect(ends == ["stopped": .stoppedEarly, "whole": .finished])
        #expect(try await scene.report(runs[1]).counts.accepted == 500)
        #expect(try await scene.report(runs[0]).counts.leased == 0)
    }

    @Test func `one that is stopped cuts off no answer to the other`() async throws {
        try await scene.addDevices(0..<500)
        let runs = [try await start("stopped", .immediate), try await start("whole", .immediate)]
        let controls = Watched<[String: RunControl]>([:])
        let slow = SlowTransport(answersAtOnce: 5) {
            let both = controls.change { $0 }
            if both.count == 2, both.values.allSatisfy({ $0.progress.counts.accepted >= 5 }) {
                both["stopped"]?.stop(.stateChanged(.paused))
            }
        }
        var sender = SendingSetup(
            transport: slow, endpoints: [.production: .production], lanesPerEnvironment: 1, silentBudget: .init())
        sender.leaseMax = 10
        let lanes = LaneGroup(sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        let ends = try await execute(runs, lanes, devices: 500) { run, control in
            controls.change { $0[run.campaign] = control }
        }
        #expect(ends["whole"] == .finished && ends["stopped"] != .finished)
        // A lane that holds nothing but what is stopped ends at once.
        #expect(slow.cutOff.change { $0 }.allSatisfy { $0.hasPrefix("stopped") })
        #expect(try await scene.report(runs[1]).counts.accepted == 500)
    }

    @Test func `are held back together by the pace they share`() async throws {
        try await scene.addDevices(0..<20)
        let runs = [try await start("a", .immediate), try await start("b", .immediate)]
        let start = scene.clock.now
        let clock = scene.clock
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                let lanes = laneGroup(lanes: 2, paces: [SharedPace(name: "all", pace: .init(pushesPerSecond: 10))])
                let ends = try await execute(runs, lanes, devices: 20)
                #expect(ends == ["a": .finished, "b": .finished])
            }
            group.addTask {
                await clock.run(inStepsOf: .milliseconds(50), forSleepsOf: .milliseconds(1))
            }
            try await group.next()
            clock.release()
            try await group.waitForAll()
        }
        #expect(transport.seen.count == 40)
        #expect(scene.clock.now - start >= .milliseconds(3500))
    }
}

/// The runs' controls, to wait until all of them have something to send or are to stop.
private final class Controls: Sendable {
    private let controls = Mutex<[RunControl]>([])
    private let changed = Signal()

    func add(_ control: RunControl) {
        controls.withLock { $0.append(control) }
        changed.raise()
    }

    func ready(_ count: Int, _ devices: Int) async {
        while !Task.isCancelled {
            let seen = changed.version
            let controls = controls.withLock { $0 }
            guard controls.count == count else {
                await changed.wait(after: seen)
                continue
            }
            for control in controls { await written(control, devices) }
            return
        }
    }

    private func written(_ control: RunControl, _ devices: Int) async {
        while !Task.isCancelled {
            let seen = control.progress.changed.version
            if control.decision.reason != nil || control.progress.counts.audience == devices { return }
            await control.progress.changed.wait(after: seen)
        }
    }
}
