import APNs
import Foundation
import GRDB
import Logging
import LonePipeline
import Model
import Platform
import SQLiteStore
import Senders
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A run in trouble` {
    let accepting = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    @Test func `5,000 production tokens at a sandbox host: no device is changed, and nobody is lost`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<5000)
        let wrongHost = ScriptedTransport { _, _ in ScriptedTransport.refused(400, .badDeviceToken) }
        let run = try await scene.start(try scene.definition())
        guard case .breakerOpen(let reason) = try await scene.execute(run, wrongHost, leaseMax: 500) else {
            Issue.record("the breaker stayed closed")
            return
        }
        for word in ["BadDeviceToken", "production", PipelineScene.topic, "environment", "endpoints", "no device"] {
            #expect(reason.contains(word))
        }
        let report = try await scene.report(run)
        #expect(report.run.state == .paused)
        #expect(report.run.stateReason == reason)
        // The freeze ends with the run, and the next start goes on behind what is written down.
        #expect(report.counts.pending >= 500 && report.counts.pending == report.counts.audience)
        #expect((report.devicesGone, report.devicesSuspended) == (0, 0))
        #expect(try await scene.store.deviceCounts().map(\.status) == [.active])
        // The host put right, the same run reaches everybody, once a person says so.
        #expect(try await scene.execute(run, accepting) == .breakerOpen(reason))
        #expect(try await scene.report(run).counts == report.counts)
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, accepting) == .finished)
        #expect(try await scene.report(run).counts.accepted == 5000)
    }

    @Test func `production tokens stored as sandbox: the import that is asked for heals that run`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<400, environment: .sandbox)
        let run = try await scene.start(try scene.definition())
        let wrong = ScriptedTransport { _, _ in ScriptedTransport.refused(400, .badDeviceToken) }
        let pipeline = LonePipeline(
            store: scene.store,
            sender: SendingSetup(
                transports: [.sandbox: wrong, .production: accepting],
                endpoints: [.sandbox: .sandbox, .production: .production], lanesPerEnvironment: 1, silentBudget: .init()
            ),
            clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        guard case .breakerOpen(let reason) = try await pipeline.execute(run, as: "test", watch: { _, _ in }) else {
            Issue.record("the breaker stayed closed")
            return
        }
        #expect(reason.contains("environment") && reason.contains("resume"), "\(reason)")
        // The same installations, with the tokens and the environment they should have had.
        let records = try (0..<400).map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number + 5000))), environment: .production,
                topic: PipelineScene.topic)
            record.installationID = "install-\(number)"
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await pipeline.execute(run, as: "test") { _, _ in } == .finished)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 400 && report.devicesSuspended == 0)
        #expect(try await scene.store.deviceCounts().map(\.status) == [.active])
    }

    /// Where senders share a store, with the last answers in it another one may end the run.
    @Test func `what stops it is on record before the answers that said so`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let run = try await scene.start(try scene.definition())
        let store = try DatabaseQueue(path: scene.folder.file("store.sqlite"))
        try await store.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE seen (leased INTEGER);
                    CREATE TRIGGER seen AFTER UPDATE OF halt ON run WHEN new.halt IS NOT NULL
                    BEGIN INSERT INTO seen VALUES (new.leased); END
                    """)
        }
        let wrongTopic = ScriptedTransport { _, _ in ScriptedTransport.refused(400, .badTopic) }
        guard case .breakerOpen = try await scene.execute(run, wrongTopic) else {
            Issue.record("the breaker stayed closed")
            return
        }
        let leased = try await store.read { db in try Int.fetchAll(db, sql: "SELECT leased FROM seen") }
        #expect(leased.count == 1 && leased.allSatisfy { $0 > 0 }, "\(leased)")
        try store.close()
    }

    /// A process that has heard four times a hundred refusals and then hears nothing more; meanwhile `body` sees the store
    /// and a copy of it, as SIGKILL would have left it.
    private func stoppedInTheMiddle(
        by reason: PushReason, _ body: (SQLiteFileStore, SQLiteFileStore, Run) async throws -> Void,
        after: (SQLiteFileStore, Run) async throws -> Void = { _, _ in }
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        let run = try await scene.start(try scene.definition())
        let (asked, isOver) = (Watched(0), Signal())
        let slow = SlowTransport(answersAtOnce: 100, result: ScriptedTransport.refused(400, reason)) {
            let times = asked.change { count in
                count += 1
                return count
            }
            if times > 4 { await isOver.waitUncancelled(after: 0) }
        }
        let pipeline = scene.pipeline(slow, lanes: 1, endpoints: [.production: .production])
        async let end = pipeline.execute(run, as: "first") { _, _ in }
        // Also if `body` throws: the lane, and with it the run, would wait for ever.
        defer { isOver.raise() }
        await asked.until { $0 > 4 }
        let path = scene.folder.file("killed.sqlite")
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: scene.folder.file("store.sqlite" + suffix), toPath: path + suffix)
        }
        try await body(scene.store, try SQLiteFileStore(path: path) { $0 != "first" }, run)
        isOver.raise()
        guard case .breakerOpen = try await end else { return #expect(Bool(false), "it went on") }
        let kinds = try await scene.store.events(run: run.id).map(\.kind)
        #expect(kinds.count { $0 == EventKind.runPaused.rawValue } == 1)
        try await after(scene.store, run)
    }

    @Test func `a person who lets it go on before the last answer is in is not overruled`() async throws {
        try await stoppedInTheMiddle(by: .badTopic) { store, _, run in
            try await store.change(run.id, to: .running, reason: nil, now: run.createdAt, by: "ray")
        } after: { store, run in
            let left = try #require(try await store.run(run.id))
            #expect(left.state == .running && left.halt == nil && left.owner == nil)
        }
    }

    @Test(arguments: [PushReason.badTopic, .badDeviceToken])
    func `what stopped it is on record before the last answer is in, and outlives its process`(
        reason: PushReason
    ) async throws {
        try await stoppedInTheMiddle(by: reason) { store, copy, run in
            let found = try #require(try await store.run(run.id))
            #expect(found.state == .paused && found.halt == .breaker && found.owner == "first")
            let claim = try await copy.claim(run.id, by: "second", now: run.createdAt)
            #expect(claim == .breakerOpen(try #require(found.stateReason)))
        }
    }

    @Test func `devices of a wrong host that a sender had no time to reopen are sent to by the next`() async throws {
        try await stoppedInTheMiddle(by: .badDeviceToken) { _, copy, run in
            let left = try #require(try await copy.run(run.id))
            #expect(left.counts.rejected >= 200)
            let clock = ManualClock(run.createdAt).clock
            _ = try await Recovery(store: copy, journals: .none, clock: clock).recoverAbandoned()
            try await copy.change(run.id, to: .running, reason: nil, now: run.createdAt, by: "ray")
            let sender = SendingSetup(
                transport: accepting, endpoints: [.production: .production], lanesPerEnvironment: 1,
                silentBudget: .init())
            let pipeline = LonePipeline(
                store: copy, sender: sender, clock: clock, jitter: { 0 }, logger: Logger(label: "test"))
            #expect(try await pipeline.execute(run, as: "second") { _, _ in } == .finished)
            #expect(try await copy.report(run.id).counts.accepted == 1000)
        }
    }

    @Test(arguments: [(400, PushReason.other("NewInOctober")), (400, nil), (413, nil), (451, .other("")), (302, nil)])
    func `an answer nobody knows stops the run after a few, and costs nobody anything`(
        status: Int, reason: PushReason?
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2000)
        let puzzled = ScriptedTransport { _, _ in .answered(PushResponse(status: status, reason: reason)) }
        let run = try await scene.start(try scene.definition { $0.maxAttempts = 1 })
        guard case .breakerOpen = try await scene.execute(run, puzzled, leaseMax: 100) else {
            Issue.record("the run went on")
            return
        }
        #expect(puzzled.seen.count < 1000)
        let counts = try await scene.report(run).counts
        #expect(counts.pending >= 100 && counts.pending == counts.audience)
        #expect(try await scene.store.deviceCounts().map(\.status) == [.active])
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, accepting) == .finished)
        #expect(try await scene.report(run).counts.accepted == 2000)
    }

    @Test func `a service that says when to come again is left alone until then`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        let back = scene.clock.now + .seconds(120)
        let transport = ScriptedTransport { _, _ in
            scene.clock.now < back
                ? .answered(
                    PushResponse(
                        status: 503, reason: .serviceUnavailable, retryAfter: .moment(back.milliseconds)))
                : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        async let end = scene.execute(run, transport, leaseMax: 5)
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(10))
        #expect(try await end == .finished)
        scene.clock.release()
        await driver
        #expect(try await scene.report(run).counts.accepted == 1000)
        // No probe meanwhile: refused is what two lanes had under way at the beginning.
        #expect(transport.seen.count <= 1000 + 20)
    }

    @Test func `a service that asked to be left alone is so by the next sender, too`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition())
        let back = scene.clock.now + .seconds(1200)
        _ = try await scene.store.claim(run.id, by: "dead", now: scene.clock.now)
        let hold = EndpointHold(
            environment: .production, endpoint: PushEndpoint.production.description, status: 503,
            since: scene.clock.now, nextTryAt: back)
        try await scene.store.setHolds([hold], run: run.id, owner: "dead")
        let early = Watched(0)
        let transport = ScriptedTransport { _, _ in
            if scene.clock.now < back { early.change { $0 += 1 } }
            return ScriptedTransport.accepted
        }
        let store = try SQLiteFileStore(path: scene.store.path) { $0 != "dead" }
        let sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 2,
            silentBudget: .init())
        let pipeline = LonePipeline(
            store: store, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
        async let end = pipeline.execute(run, as: "next") { _, _ in }
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(10))
        #expect(try await end == .finished)
        scene.clock.release()
        await driver
        #expect(early.change { $0 } == 0)
        #expect(try await scene.report(run).counts.accepted == 100)
    }

    @Test func `an endpoint that was out of reach is tried at once by whoever resumes the run`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition())
        _ = try await scene.store.claim(run.id, by: "test", now: scene.clock.now)
        let hold = EndpointHold(
            environment: .production, endpoint: "another.example:443", status: 503, since: scene.clock.now,
            nextTryAt: scene.clock.now + .seconds(1200))
        try await scene.store.setHolds([hold], run: run.id, owner: "test")
        let away = ScriptedTransport(failure: .unreachable(.production, reason: "no route")) { _, _ in
            .notSent(.stopped)
        }
        guard case .unreachable = try await scene.execute(run, away) else {
            Issue.record("the run went on")
            return
        }
        #expect(try await scene.store.holds(of: run.id).isEmpty)
    }

    @Test func `what expires while a service asks to be left alone for longer is not kept waiting`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<500)
        let transport = ScriptedTransport { _, _ in
            .answered(PushResponse(status: 503, reason: .serviceUnavailable, retryAfter: .seconds(3600)))
        }
        let start = scene.clock.now
        let run = try await scene.start(try scene.definition { $0.expiresAfter = .seconds(60) })
        async let end = scene.execute(run, transport, leaseMax: 5)
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(2))
        #expect(try await end.isFinished)
        scene.clock.release()
        await driver
        let report = try await scene.report(run)
        #expect(report.suppressed.map(\.reason) == ["expired"])
        #expect(report.counts.suppressed == 500 - transport.seen.count && transport.seen.count <= 20)
        let finishedAt = try #require(try await scene.store.run(run.id)?.finishedAt)
        #expect(finishedAt - start < .seconds(3000))
    }

    @Test func `each environment is judged by itself`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        try await scene.addDevices(1000..<1050, environment: .sandbox)
        let transport = ScriptedTransport { push, _ in
            let number = PipelineScene.number(push.token)
            return number == 7 || number >= 1000
                ? ScriptedTransport.refused(400, .badDeviceToken) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport) == .finished)
        // All of the sandbox was wrong, 50 are too few to stop the run for, and none of them is believed.
        let report = try await scene.report(run)
        #expect(report.devicesSuspended == 1)
        #expect(try await scene.store.devices(matching: "install-7").first?.status == .suspended)
        #expect(try await scene.store.devices(matching: "install-1007").first?.status == .active)
    }

    @Test func `a service in trouble is left alone for a while, and asked with a few`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<5000)
        let isBack = Mutex(false)
        let transport = ScriptedTransport { _, _ in
            isBack.withLock { $0 }
                ? ScriptedTransport.accepted : ScriptedTransport.refused(503, .serviceUnavailable)
        }
        let run = try await scene.start(try scene.definition())
        async let end = scene.execute(run, transport, leaseMax: 100)
        await scene.clock.sleeper(atLeast: CircuitBreaker.delays[0])
        let before = transport.seen.count
        #expect(before < 5000)
        scene.clock.advance(by: .seconds(2))
        await scene.clock.sleeper(atLeast: CircuitBreaker.delays[1])
        // The ten that ask, and a lease that the other lane had in hand when the first pause began.
        #expect(transport.seen.count < before + 150)
        isBack.withLock { $0 = true }
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(30))
        #expect(try await end == .finished)
        scene.clock.release()
        await driver
        #expect(try await scene.report(run).counts.accepted == 5000)
    }

    @Test func `a service that stays away pauses the run, with most pushes never sent`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<5000)
        let transport = ScriptedTransport { _, _ in .unknown(.connectionLost("reset")) }
        let run = try await scene.start(try scene.definition())
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(30))
        let end = try await scene.execute(run, transport, leaseMax: 100)
        scene.clock.release()
        await driver
        guard case .unreachable(let reason) = end else {
            Issue.record("the run went on: \(end)")
            return
        }
        #expect(reason.contains("api.push.apple.com"))
        #expect(transport.seen.count < 1000)
        #expect(try await scene.report(run).run.state == .paused)
    }

    @Test(arguments: [PushReason.expiredProviderToken, .unrelatedKeyIdInToken])
    func `a provider token refused once costs nobody anything`(reason: PushReason) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let transport = ScriptedTransport { _, times in
            times == 0 ? ScriptedTransport.refused(403, reason) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(try await scene.report(run).counts.accepted == 100)
    }

    @Test(arguments: [(PushReason.expiredProviderToken, "clock"), (.unrelatedKeyIdInToken, "key_id")])
    func `refused again, the credential is at fault`(reason: PushReason, advice: String) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.refused(403, reason) }
        let run = try await scene.start(try scene.definition())
        guard case .credentialRefused(let words) = try await scene.execute(run, transport) else {
            Issue.record("the credential fault was not seen")
            return
        }
        #expect(words.contains(advice))
        #expect(try await scene.report(run).counts.pending == 100)
    }

    @Test func `a run with one attempt only gives back what it never wrote`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition { $0.expiresAfter = .zero })
        let broken = ScriptedTransport { _, _ in .notSent(.stopped) }
        async let end = scene.pipeline(broken).execute(run, as: "test") { control, _ in
            control.stop(.stopRequested)
        }
        #expect(try await end == .stoppedEarly)
        #expect(try await scene.execute(run, accepting) == .finished)
        #expect(try await scene.report(run).counts.accepted == 100)
    }
}
