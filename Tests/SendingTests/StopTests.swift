import APNs
import Foundation
import Logging
import LonePipeline
import Model
import SQLiteStore
import Senders
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// A stop of a run that goes on, heard of by the file, by the record, or before it began.
@Suite(.timeLimit(.minutes(10))) struct `A stop` {
    private static let all = StopOrder(.all, by: "anna", at: Timestamp(milliseconds: 0), reason: "wrong text")
    private static let scopes: [StopOrder.Scope] = [.all, .campaign("c"), .run(1)]

    private let scene: PipelineScene
    private let stops = StopWatch()

    init() throws { scene = try PipelineScene() }

    private func pipeline(_ transport: any Transport, leaseMax: Int = 50) -> LonePipeline {
        var sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 2,
            silentBudget: .init(limit: 3, window: .seconds(3600)))
        sender.leaseMax = leaseMax
        sender.stops = stops
        return LonePipeline(
            store: scene.store, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
    }

    private func execute(_ run: Run, _ pipeline: LonePipeline) async throws -> RunEnd {
        try await pipeline.execute(run, as: "sender") { _, _ in }
    }

    private func lift(_ order: StopOrder) async throws {
        stops.hear(StopOrders())
        if case .run(let run) = order.scope {
            try await scene.store.change(run, to: .running, reason: nil, now: scene.clock.now, by: "anna")
        } else {
            let lifted = try await scene.store.liftStop(order.scope, reason: "right", by: "anna", now: scene.clock.now)
            #expect(lifted?.by == order.by)
        }
    }

    @Test(arguments: scopes)
    func `ends a run at once, is put on record, and the run goes on where it was`(scope: StopOrder.Scope) async throws {
        try await scene.addDevices(0..<1000)
        let run = try await scene.start(try scene.definition())
        var order = Self.all
        order.scope = scope
        let (stops, asked) = (stops, Watched(0))
        let slow = SlowTransport(answersAtOnce: 10) { [order] in
            let count = asked.change { count in
                count += 1
                return count
            }
            if count == 5 { stops.hear(StopOrders([order])) }
        }
        #expect(try await execute(run, pipeline(slow)) == .stopped(order))
        let counts = try await scene.report(run).counts
        #expect(counts.accepted > 0 && counts.pending > 0 && counts.leased == 0)
        let known = try await scene.store.stops()
        let left = try #require(try await scene.store.run(run.id))
        switch scope {
        case .run:
            #expect(known.isEmpty && left.state == .paused)
            #expect(left.pausedBy == "anna" && left.stateReason == "stopped: wrong text")
        default: #expect(known.orders == [order] && left.state == .running)
        }
        let notes = try await scene.store.events(run: run.id).compactMap(StopNote.init)
        #expect(notes.count == 1)
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await execute(run, pipeline(whole)) == .stopped(order))
        #expect(whole.seen.isEmpty)
        try await lift(order)
        #expect(try await execute(run, pipeline(whole)) == .finished)
        #expect(try await scene.report(run).counts.accepted == 1000)
        #expect(whole.seen.count == 1000 - counts.accepted)
    }

    @Test func `on record alone is heard of with the next lease`() async throws {
        try await scene.addDevices(0..<1000)
        let run = try await scene.start(try scene.definition())
        let (store, asked) = (scene.store, Watched(0))
        let slow = SlowTransport(answersAtOnce: 10) {
            let count = asked.change { count in
                count += 1
                return count
            }
            guard count == 3 else { return }
            _ = try await store.recordStop(Self.all, by: "anna", now: Timestamp(milliseconds: 0))
        }
        #expect(try await execute(run, pipeline(slow)) == .stopped(Self.all))
        let counts = try await scene.report(run).counts
        #expect(counts.accepted > 0 && counts.pending > 0 && counts.leased == 0)
    }

    @Test func `of another campaign stops nothing`() async throws {
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition())
        stops.hear(StopOrders([StopOrder(.campaign("other"), by: "anna", at: scene.clock.now)]))
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await execute(run, pipeline(whole)) == .finished)
        #expect(try await scene.report(run).counts.accepted == 100)
    }

    @Test func `of a run that does not exist is lifted by the next run that is sent`() async throws {
        let senders = SenderFolder(besideStore: scene.folder.file("store.sqlite"), command: "test") {
            [clock = scene.clock] in
            clock.now
        }
        _ = try senders.stopFile.put(StopOrder(.run(7), by: "anna", at: scene.clock.now))
        try await scene.addDevices(0..<3)
        let run = try await scene.start(try scene.definition())
        var sender = SendingSetup(
            transport: ScriptedTransport { _, _ in ScriptedTransport.accepted }, endpoints: [.production: .production],
            lanesPerEnvironment: 1, silentBudget: .init())
        sender.stops = StopWatch.following(senders)
        let pipeline = LonePipeline(
            store: scene.store, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        #expect(try await execute(run, pipeline) == .finished)
        #expect(senders.stopFile.read().isEmpty)
    }

    @Test func `while it is frozen ends that, too, and the sums close`() async throws {
        try await scene.addDevices(0..<6000)
        let run = try await scene.start(try scene.definition())
        let stops = stops
        // The first answer comes while the audience is still being written down, or soon after.
        let slow = SlowTransport(answersAtOnce: 1) { stops.hear(StopOrders([Self.all])) }
        #expect(try await execute(run, pipeline(slow, leaseMax: 10)) == .stopped(Self.all))
        #expect(try await scene.report(run).counts.leased == 0)
        try await lift(Self.all)
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await execute(run, pipeline(whole)) == .finished)
        #expect(try await scene.report(run).counts.accepted == 6000)
    }

    @Test func `while another process's remains are to be recovered leaves them to whoever comes after it`()
        async throws
    {
        try await scene.addDevices(0..<20)
        let run = try await scene.start(try scene.definition())
        let gone = try SQLiteFileStore(path: scene.folder.file("store.sqlite"), isAlive: { _ in false })
        #expect(try await gone.claim(run.id, by: "gone", now: scene.clock.now) == .claimed)
        _ = try await gone.freeze(run.id, by: "gone", now: scene.clock.now) { _ in }
        let request = LeaseRequest(
            run: run.id, environment: .production, limit: 5, now: scene.clock.now, owner: "gone")
        #expect(try await gone.lease(request).deliveries.count == 5)
        let sender = SendingSetup(
            transport: ScriptedTransport { _, _ in ScriptedTransport.accepted },
            endpoints: [.production: .production], lanesPerEnvironment: 1, silentBudget: .init())
        let taking = LonePipeline(
            store: gone, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        _ = try await gone.recordStop(Self.all, by: "anna", now: scene.clock.now)
        #expect(try await execute(run, taking) == .stopped(Self.all))
        #expect(try await scene.report(run).counts.leased == 5)
        try await lift(Self.all)
        #expect(try await execute(run, taking) == .finished)
        #expect(try await scene.report(run).counts.accepted == 20)
        try gone.close()
    }

    @Test func `counts what was started after its moment, and nothing else`() {
        let control = RunControl(counts: DeliveryCounts(), isFrozen: true)
        let completions = [0, 99, 100, 101, 200].map {
            PushCompletion(tag: 0, result: ScriptedTransport.accepted, startedAt: UInt64($0))
        }
        control.decision.count(afterStop: completions)
        #expect(control.decision.startedAfterStop == 0)
        control.stop(.stopped(Self.all), since: 100)
        control.decision.count(afterStop: completions)
        #expect(control.decision.startedAfterStop == 2)
    }

    @Test(arguments: scopes)
    func `that was lifted elsewhere leaves the file of a machine that still has it`(scope: StopOrder.Scope) async throws
    {
        try await scene.addDevices(0..<3)
        let run = try await scene.start(try scene.definition())
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "anna")
        let senders = SenderFolder(besideStore: scene.folder.file("store.sqlite"), command: "test") {
            [clock = scene.clock] in
            clock.now
        }
        var order = StopOrder(scope, by: "anna", at: scene.clock.now, reason: "wrong text")
        _ = try senders.stopFile.put(order)
        func record() async throws {
            try await StopWatch.following(senders).record(in: scene.store, now: scene.clock.now)
        }
        try await record()
        try await lift(order)
        try await record()
        #expect(senders.stopFile.read().isEmpty)
        #expect(try await scene.store.stops().isEmpty)
        #expect(try await scene.store.run(run.id)?.state != .paused)
        // A new one is in force again.
        order.at = scene.clock.now + .seconds(1)
        _ = try senders.stopFile.put(order)
        try await record()
        #expect(senders.stopFile.read().orders == [order])
    }
}

@Suite(.timeLimit(.minutes(10))) struct `The file that stops` {
    private let folder: TemporaryDirectory
    private let senders: SenderFolder
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)
    private static let order = StopOrder(.campaign("new-podcast"), by: "anna (uid 1)", at: noon, reason: "wrong\ttext")

    init() throws {
        folder = try TemporaryDirectory()
        senders = SenderFolder(besideStore: folder.file("s.sqlite"), command: "run", now: { Self.noon })
    }

    private var file: StopFile { senders.stopFile }

    @Test func `says what is stopped, by whom, since when and why`() throws {
        #expect(file.read().isEmpty)
        #expect(file.path == senders.path + "/STOP")
        #expect(try file.put(Self.order))
        #expect(try !file.put(Self.order))
        #expect(try file.put(StopOrder(.run(7), by: "ben", at: Self.noon + .seconds(1))))
        var first = Self.order
        first.reason = "wrong text"
        #expect(file.read().orders == [first, StopOrder(.run(7), by: "ben", at: Self.noon + .seconds(1))])
        #expect(try file.lift(Self.order.scope))
        #expect(try !file.lift(Self.order.scope))
        #expect(try file.lift(.run(7)))
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test(arguments: [
        ("", StopOrder.Scope.all), ("\n \n", .all), ("all\n", .all), ("campaign a b\n", .campaign("a b")),
        ("campaign a\r\n", .campaign("a")),
        ("campaign a \n", .campaign("a")),
        ("run 12\n", .run(12)), ("run a/b c\n", .occurrence(campaign: "a", occurrence: "b c")), ("run twelve\n", .all),
        ("new-podcast\n", .all),
    ])
    func `made by hand stops what it names, and everything where that cannot be read`(
        text: String, scope: StopOrder.Scope
    ) throws {
        try FileManager.default.createDirectory(atPath: senders.path, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: file.path))
        #expect(file.read().orders.map(\.scope) == [scope])
        #expect(file.read().orders.first?.by == "the creator of \(file.path)")
        #expect(try file.lift(scope))
        #expect(file.read().isEmpty)
    }

    @Test(arguments: [Int64.min, -1, Int64.max]) func `with an impossible time is in force since its file was made`(
        moment: Int64
    ) throws {
        try FileManager.default.createDirectory(atPath: senders.path, withIntermediateDirectories: true)
        try Data("all\t\(moment)\tanna\twrong text\n".utf8).write(to: URL(filePath: file.path))
        let watch = StopWatch.following(senders)
        let order = try #require(watch.orders[.all])
        #expect(order.at.milliseconds > 0 && order.at < Timestamp(seconds: 253_402_300_800))
    }

    /// As `resume` does it: what its own thread has not seen yet must not stop the run again.
    @Test func `is known as it is now to a process that lifts a stop and goes on`() throws {
        let watch = StopWatch.following(senders)
        for _ in 0..<100 {
            _ = try file.put(Self.order)
            #expect(watch.orders.orders.map(\.scope) == [Self.order.scope])
            try file.lift(Self.order.scope)
            #expect(watch.orders.isEmpty)
        }
    }

    @Test func `of an occurrence stops its run alone, is recorded as its pause, and leaves with the run's resume`()
        async throws
    {
        try await withStore { store in
            let watch = StopWatch.following(senders)
            let run = try await run(in: store)
            let order = StopOrder(.occurrence(campaign: "c", occurrence: "o"), by: "anna", at: Self.noon)
            _ = try file.put(order)
            #expect(file.read().order(of: run) == order)
            #expect(file.read().order(run: run.id, campaign: "c") == nil)
            watch.hear(file.read())
            try await watch.record(in: store, now: Self.noon)
            #expect(try await store.run(run.id)?.state == .paused)
            try file.lift(of: run)
            #expect(file.read().isEmpty)
        }
    }

    /// On a disk without room its block takes the words.
    @Test func `has a spare file beside it once a sender has started`() throws {
        let registration = try senders.register()
        let spare = senders.path + "/STOP.spare"
        #expect(try Data(contentsOf: URL(filePath: spare)).count == 4096)
        withExtendedLifetime(registration) {}
    }

    @Test func `is heard of by whoever watches, and so is its end`() async throws {
        _ = try senders.register()
        try await withStore { store in
            let watch = StopWatch.following(senders)
            let control = RunControl(counts: DeliveryCounts(), isFrozen: true)
            let registration = watch.join(try await run(in: store)) { control.stop(.stopped($0), since: $1) }
            defer { watch.remove(registration) }
            _ = try file.put(StopOrder(.all, by: "anna", at: Self.noon))
            await control.decision.halted()
            #expect(control.decision.reason == .stopped(StopOrder(.all, by: "anna", at: Self.noon)))
            #expect(watch.orders[.all] != nil)
            try await watch.record(in: store, now: Self.noon)
            #expect(try await store.stops()[.all]?.by == "anna")
        }
    }

    @Test func `is in force for a watch that begins after it was made`() throws {
        _ = try file.put(Self.order)
        let watch = StopWatch.following(senders)
        #expect(watch.orders[Self.order.scope] != nil)
    }

    /// The store remembers what was lifted, so that nobody waits for anybody.
    @Test func `is not put on record by whoever heard of it before it was lifted`() async throws {
        try await withStore { store in
            _ = try file.put(Self.order)
            let watch = StopWatch.following(senders)
            let read = file.read()
            let written = try #require(read[Self.order.scope])
            _ = try await store.liftStop(
                Self.order.scope, inFile: written, reason: "right", by: "anna", now: Self.noon)
            // The file as it was read before.
            try await watch.record(in: store, now: Self.noon)
            #expect(try await store.stops().isEmpty)
            #expect(file.read().isEmpty)
            #expect(try await store.recordStop(written, by: "b", now: Self.noon) == .lifted)
        }
    }

    /// Earlier versions took turns by this file: a command that was suspended with it must not hold up a sender.
    @Test func `is put on record though another process holds a lock in the folder`() async throws {
        try await withStore { store in
            _ = try file.put(Self.order)
            let lock = open(senders.path + "/stop.lock", O_RDWR | O_CREAT, 0o600)
            defer { close(lock) }
            try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
            try await StopWatch.following(senders).record(in: store, now: Self.noon)
            #expect(try await store.stops()[Self.order.scope] != nil)
        }
    }

    /// A wrong number, given while the store could not say so, would stop the run that gets this number later.
    @Test func `of a run that is over or absent leaves the file with the next sender`() async throws {
        try await withStore { store in
            let run = try await run(in: store)
            try await store.change(run.id, to: .cancelled, reason: nil, now: Self.noon, by: "anna")
            let paused = try await self.run(in: store, occurrence: "p")
            try await store.change(paused.id, to: .paused, reason: nil, now: Self.noon, by: "anna")
            for number in [run.id, paused.id, paused.id + 7] {
                _ = try file.put(StopOrder(.run(number), by: "ben", at: Self.noon))
            }
            try await StopWatch.following(senders).record(in: store, now: Self.noon)
            #expect(file.read().orders.map(\.scope) == [.run(paused.id)])
        }
    }

    private func run(in store: SQLiteFileStore, occurrence: String = "o") async throws -> Run {
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: Self.noon)
        return try await store.createRun(definition, occurrence: occurrence, now: Self.noon, by: "test").run
    }

    private func withStore(_ body: (SQLiteFileStore) async throws -> Void) async throws {
        let store = try SQLiteFileStore(path: folder.file("s.sqlite"))
        try await body(store)
        try store.close()
    }

    @Test func `and others at the same time are all in the file`() async throws {
        let folder = try TemporaryDirectory()
        let orders = (0..<24).map {
            StopOrder(.campaign("c \($0)"), by: "anna", at: Timestamp(milliseconds: Int64($0)))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for order in orders {
                group.addTask {
                    let senders = SenderFolder(besideStore: folder.file("store.sqlite"), command: "test") { order.at }
                    _ = try senders.stopFile.put(order)
                }
            }
            try await group.waitForAll()
        }
        let senders = SenderFolder(besideStore: folder.file("store.sqlite"), command: "test") { orders[0].at }
        #expect(senders.stopFile.read().orders == orders)
        #expect(try FileManager.default.contentsOfDirectory(atPath: senders.path) == ["STOP"])
    }
}
