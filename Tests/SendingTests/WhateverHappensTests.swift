import APNs
import APNsSimulator
import Foundation
import Logging
import LonePipeline
import Model
import Platform
import SQLiteStore
@testable import Senders
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// What happens around a run costs nobody their push: no store that is busy, no host that is away, no answer that is lost.
@Suite(.timeLimit(.minutes(10))) struct `Whatever happens` {
    private static let all = FaultScene.devices
    /// The answers to all but the first requests come late, so that the store can be locked before.
    private static let held = FaultRule(when: .always.skipping(20), action: .delay(milliseconds: 4_000))

    @Test(arguments: Model.Configuration.Transport.allCases)
    func `APNs out of reach for six starts, then a 503 to everybody: all are accepted`(
        kind: Model.Configuration.Transport
    ) async throws {
        let scene = try await FaultScene(kind)
        let run = try await scene.start(.resend)
        let nobody = try ClosedPort()
        for start in 1...6 {
            let end = try await scene.execute(run, connectsMax: 1, port: nobody.number)
            guard case .unreachable = end else {
                Issue.record("start \(start) ended as \(end)")
                return
            }
            let counts = try await scene.base.report(run)
            #expect(counts.counts.pending == Self.all && counts.attempts == 0)
        }
        scene.simulator.setFaults([
            FaultRule(when: .always.times(Self.all), action: .answer(status: 503, reason: "ServiceUnavailable"))
        ])
        // A run that had paused itself continues with single requests, and pauses again while each is refused.
        var end = try await scene.execute(run)
        for _ in 0..<100 {
            guard case .unreachable = end else { break }
            end = try await scene.execute(run)
        }
        #expect(end.isFinished)
        let books = try await scene.books(run, .resend)
        #expect(books.stored.accepted == Self.all && books.report.attempts == 2 * Self.all)
    }

    @Test(arguments: Model.Configuration.Transport.allCases)
    func `a store locked by another program: nobody gets it twice, and the run goes on by itself`(
        kind: Model.Configuration.Transport
    ) async throws {
        let scene = try await FaultScene(kind) { $0.faults = [Self.held] }
        let run = try await scene.start(.resend)
        let control = Mutex<RunControl?>(nil)
        let lock = WriteLock(scene.base.store.path)
        async let end = scene.execute(run) { found in control.withLock { $0 = found } }
        try await scene.until { scene.simulator.log().count >= 20 }
        try lock.take()
        scene.simulator.setFaults([])
        try await scene.until { control.withLock { $0?.storeBackoff.wait } != nil }
        #expect(control.withLock { $0?.storeBackoff.wait?.reason } == .locked)
        try lock.release()
        #expect(try await end == .finished)
        #expect(control.withLock { $0?.storeBackoff.wait } == nil)
        let books = try await scene.books(run, .resend)
        #expect(books.stored.accepted == Self.all && books.doubles == 0)
        #expect(books.report.attempts == Self.all && books.report.possibleDuplicates == 0)
    }

    @Test(arguments: Model.Configuration.Transport.allCases)
    func `a stop while the store is locked ends in time, and the journal keeps the answers`(
        kind: Model.Configuration.Transport
    ) async throws {
        let scene = try await FaultScene(kind) { $0.faults = [Self.held] }
        let run = try await scene.start(.skip)
        let path = scene.base.folder.file("16.journal")
        let space = PushID(high: scene.base.store.namespace.high, low: scene.base.store.namespace.low)
        let identity = PushJournal.Identity.current(store: space, sender: 16)
        let own = try PushJournal(path: path, identity: identity)
        let journals = SenderJournals(own: own) { _ in
            Result { () throws(JournalDistrust) in try JournalEvidence.read(path: path, expecting: identity) }
        }
        let lock = WriteLock(scene.base.store.path)
        let control = Mutex<RunControl?>(nil)
        async let end = scene.execute(run, journals: journals) { found in control.withLock { $0 = found } }
        try await scene.until { scene.simulator.log().count >= 20 }
        try lock.take()
        scene.simulator.setFaults([])
        try await scene.until { control.withLock { $0?.storeBackoff.wait } != nil }
        control.withLock { $0?.stop(.stopRequested) }
        do {
            Issue.record("ended as \(try await end)")
        } catch {
            #expect(error as? StoreError == .busy(path: scene.base.store.path))
        }
        try lock.release()
        // The same sender starts again: what it had on the wire is known to the last push, so that nobody is in doubt.
        #expect(try await scene.execute(run, journals: journals).isFinished)
        let books = try await scene.books(run, .skip)
        #expect(books.doubles == 0 && books.stored.accepted + books.stored.unknown == Self.all)
        #expect(books.stored.unknown == 0 || !books.knowsStreams)
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `no room for a lane's part of the journal: it is waited for, said so, and nobody is sent to before`(
        code: Int32
    ) async throws {
        let scene = try await FaultScene(.native)
        let run = try await scene.start(.resend)
        let hasRoom = Mutex(true)
        let space = PushID(high: scene.base.store.namespace.high, low: scene.base.store.namespace.low)
        let journal = try PushJournal(
            path: scene.base.folder.file("16.journal"), identity: .current(store: space, sender: 16)
        ) { file, offset, byteCount in
            hasRoom.withLock { $0 } ? posix_fallocate(file, off_t(offset), off_t(byteCount)) : code
        }
        hasRoom.withLock { $0 = false }
        let control = Mutex<RunControl?>(nil)
        let journals = SenderJournals(own: journal) { _ in .failure(.missing) }
        async let end = scene.execute(run, journals: journals) { found in control.withLock { $0 = found } }
        try await scene.until { control.withLock { $0?.storeBackoff.wait != nil || $0?.decision.failure != nil } }
        #expect(control.withLock { $0?.storeBackoff.wait?.reason } == .diskFull)
        #expect(control.withLock { $0?.decision.reason } == nil && scene.simulator.log().isEmpty)
        hasRoom.withLock { $0 = true }
        #expect(try await end == .finished)
        #expect(control.withLock { $0?.storeBackoff.wait } == nil)
        let books = try await scene.books(run, .resend)
        #expect(books.stored.accepted == Self.all && books.doubles == 0 && books.report.attempts == Self.all)
    }

    @Test(arguments: Model.Configuration.Transport.allCases)
    func `answers lost at a high rate: sent again until the attempts are used up`(
        kind: Model.Configuration.Transport
    ) async throws {
        let scene = try await FaultScene(kind) {
            $0.faults = [FaultRule(when: .rate(0.3), moment: .afterChecks, action: .reset(code: 2))]
        }
        let run = try await scene.start(.resend)
        #expect(try await scene.execute(run).isFinished)
        let books = try await scene.books(run, .resend)
        #expect(books.stored.accepted + books.stored.unknown == Self.all)
        // As many as five losses in a row make: fewer than one in a hundred.
        for outcome in books.outcomes.values where outcome.state == .unknown { #expect(outcome.attempts == 5) }
        if kind.knowsStreams { #expect(books.stored.unknown < Self.all / 20) }
    }

    @Test func `a lane that cannot connect does not pause a run whose other lanes can`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3000)
        let run = try await scene.start(try scene.definition())
        let good = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let pipeline = scene.pipeline(PartlyReachable(good: good), lanes: 2, leaseMax: 100)
        #expect(try await pipeline.execute(run, as: "test") { _, _ in } == .finished)
        #expect(try await scene.report(run).counts.accepted == 3000)
    }

    @Test func `what a dead sender left is settled as its journal says`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<6)
        let run = try await scene.start(try scene.definition { $0.onUnknown = .skip })
        _ = try await scene.store.claim(run.id, by: "dead", now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: "dead", now: scene.clock.now) { _ in }
        let lease = try await scene.store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 5, now: scene.clock.now, owner: "dead"))
        let evidence = JournalEvidence(entries: [
            lease.id: [
                1: JournalEntry(state: .queued), 2: JournalEntry(state: .started),
                3: JournalEntry(state: .answered(PushResponse(status: 200)), localeIndex: 1),
                4: JournalEntry(state: .answered(PushResponse(status: 410, reason: .unregistered))),
            ],
            99: [5: JournalEntry(state: .started)],
        ])
        let recovery = Recovery(
            store: scene.store, journals: SenderJournals(own: nil) { _ in .success(evidence) },
            clock: scene.clock.clock)
        let counts = try await recovery.recover(run, heldBy: "dead")
        #expect(counts.notStarted == 2 && counts.answered == 2 && counts.unknown == 1 && counts.resent == 0)
        #expect(counts.leases == 1 && counts.distrust == nil)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 1 && report.counts.rejected == 1 && report.counts.unknown == 1)
        #expect(report.counts.pending == 3 && report.counts.leased == 0 && report.attempts == 3)
        // What becomes of the device is for the end of the run to say.
        #expect(report.devicesGone == 0 && report.unknown.map(\.reason) == ["Interrupted"])
        #expect(try await scene.store.markGone(run: run.id, now: scene.clock.now) == 1)
        // Once is enough.
        #expect(try await recovery.recover(run, heldBy: "dead") == RecoveryCounts())
        let events = try await scene.store.events(run: run.id)
        #expect(events.last?.kind == "run_recovered")
        #expect(
            events.last?.detail.contains("2 deliveries were not started, 2 had responses, 1 was in flight") == true)
    }

    @Test func `after a crash what had one attempt only is unknown, and not sent again`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<6)
        let run = try await scene.start(try scene.definition { $0.expiresAfter = .zero })
        _ = try await scene.store.claim(run.id, by: "dead", now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: "dead", now: scene.clock.now) { _ in }
        _ = try await scene.store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 5, now: scene.clock.now, owner: "dead"))
        let recovery = Recovery(store: scene.store, journals: .none, clock: scene.clock.clock)
        let counts = try await recovery.recover(run, heldBy: "dead")
        #expect(counts.unknown == 5 && counts.resent == 0)
        try await scene.store.release(run.id, by: "dead", state: .running, reason: nil, now: scene.clock.now)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.execute(run, transport).isFinished)
        #expect(transport.seen.map { PipelineScene.number($0.push.token) } == [5])
        #expect(try await scene.report(run).counts.unknown == 5)
    }

    @Test(arguments: [JournalDistrust.missing, .otherBoot, .foreign, .damaged("it is cut off")])
    func `without a journal to believe, everything leased is in doubt, and it is said why`(
        distrust: JournalDistrust
    ) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<6)
        let run = try await scene.start(try scene.definition())
        _ = try await scene.store.claim(run.id, by: "dead", now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: "dead", now: scene.clock.now) { _ in }
        _ = try await scene.store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 5, now: scene.clock.now, owner: "dead"))
        let recovery = Recovery(
            store: scene.store, journals: SenderJournals(own: nil) { _ in .failure(distrust) },
            clock: scene.clock.clock)
        let counts = try await recovery.recover(run, heldBy: "dead")
        #expect(counts.resent == 5 && counts.notStarted == 0 && counts.distrust == distrust.description)
        #expect(try await scene.store.events(run: run.id).last?.detail.contains(distrust.description) == true)
        #expect(try await scene.report(run).attempts == 5)
    }
}

extension FaultScene {
    private struct NeverCame: Error {}

    /// Waits for something that other threads bring about; a run that ended otherwise must not be waited for.
    fileprivate func until(_ holds: () -> Bool) async throws {
        let deadline = ContinuousClock.now + Process.longest
        while !holds() {
            guard ContinuousClock.now < deadline else { throw NeverCame() }
            await Task.yield()
        }
    }
}

/// The second lane finds nobody at the other end, once the first one has had answers.
private struct PartlyReachable: Transport {
    let good: ScriptedTransport
    let bad = ScriptedTransport(failure: .unreachable(.production, reason: "no route")) { _, _ in .notSent(.stopped) }

    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        name.hasSuffix("-2")
            ? LateLane(lane: bad.lane(to: endpoint, named: name), good: good) : good.lane(to: endpoint, named: name)
    }
}

private struct LateLane: Lane {
    let lane: any Lane
    let good: ScriptedTransport

    func run() async throws(TransportError) {
        // Five leases: of the first ones the outcomes are recorded.
        while good.seen.count < 500, !Task.isCancelled { await Task.yield() }
        try await lane.run()
    }

    func send(_ batch: PushBatch) async -> Bool { await lane.send(batch) }
    func completions() async -> [PushCompletion]? { await lane.completions() }
    func finish() { lane.finish() }
    var status: LaneStatus { lane.status }
}
