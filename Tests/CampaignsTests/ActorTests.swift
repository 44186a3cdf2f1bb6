import Campaigns
import Foundation
import Model
import SQLiteStore
import Senders
import Sending
import Store
import Synchronization
import Testing

/// Use cases alone, without a terminal: who asked for what is on record, whatever store keeps it.
@Suite(.timeLimit(.minutes(10)))
struct ActorTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)
    private static let anna = Actor(
        "anna (uid 1000)", authentication: .account(uid: 1000, user: "anna"), command: "fanfare pause 1")
    private static let ben = Actor(
        "ben (uid 1001)", authentication: .account(uid: 1001, user: "ben"), origin: .timer, command: "fanfare resume 1")

    private static let clock = WallClock(now: { noon }, uptime: { .zero }, sleep: { _ in })

    @Test func `a run started, paused and resumed by two actors names each of them in the audit`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-actors-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        let run = try await StartRun(store: store)
            .start(Self.definition(), occurrence: "once", by: Self.anna, now: Self.noon).run
        let control = ControlRun(store: store, clock: Self.clock, isAlive: { _ in false })
        let paused = try await control.pause(run, reason: "wrong link", by: Self.ben)
        #expect(paused.run.state == .paused && paused.run.pausedBy == Self.ben.name)
        let resumed = try await control.resume(paused.run, by: Self.anna)
        #expect(resumed.run.state == .running)
        let events = try await ReadAudit(store: store).events(of: run, since: nil, limit: 10)
        #expect(events.map { "\($0.kind)" } == ["run_created", "run_paused", "run_running"])
        #expect(events.map(\.actor) == [Self.anna, Self.ben, Self.anna])
        try store.close()
    }

    @Test func `a use case works on a run log made up in memory`() async throws {
        let log = InMemoryRunLog()
        let run = try await log.createRun(Self.definition(), occurrence: "once", now: Self.noon, by: Self.anna).run
        let control = ControlRun(store: log, clock: Self.clock, isAlive: { _ in false })
        _ = try await control.pause(run, reason: "wait", by: Self.ben)
        let cancelled = try await control.cancel(run, reason: "wrong link", by: Self.anna)
        #expect(cancelled.run.state == .cancelled && cancelled.busyOwner == nil)
        await #expect(throws: StoreError.illegalChange(run: run.id, from: .cancelled, to: .running)) {
            try await control.resume(cancelled.run, by: Self.ben)
        }
        let events = try await ReadAudit(store: log).events(of: run, since: nil, limit: 10)
        #expect(events.map(\.actor) == [Self.anna, Self.ben, Self.anna])
        #expect(try await RunLookup.run("new-podcast", in: log).id == run.id)
    }

    @Test func `a pause that its sender has not obeyed in time names the sender`() async throws {
        let log = InMemoryRunLog()
        let run = try await log.createRun(Self.definition(), occurrence: "once", now: Self.noon, by: Self.anna).run
        log.own(run.id, by: "host:7:1:1:boot")
        let elapsed = Mutex(Duration.zero)
        let clock = WallClock(
            now: { Self.noon + elapsed.withLock { $0 } }, uptime: { elapsed.withLock { $0 } },
            sleep: { step in elapsed.withLock { $0 += step } })
        let control = ControlRun(store: log, clock: clock, isAlive: { _ in true })
        let paused = try await control.pause(run, reason: nil, by: Self.ben)
        #expect(paused.busyOwner == "host:7:1:1:boot")
        #expect(elapsed.withLock { $0 } >= .seconds(15))
    }

    @Test(arguments: [
        (SenderError.noLocks(path: "/x", reason: "no"), Failure.Kind.configuration),
        (.senderFolder(path: "/x", reason: "no"), .configuration), (.lockFileDamaged(path: "/x"), .configuration),
        (.lockFileBusy(path: "/x"), .tryAgain), (.registrationLost(path: "/x"), .tryAgain),
        (.otherDaemon("x"), .tryAgain),
    ])
    func `what keeps a sender from its registration is the configuration's fault, or passes`(
        error: SenderError, kind: Failure.Kind
    ) {
        #expect(Failure(error) == Failure(kind, error.description))
    }

    private static func definition() -> RunDefinition {
        let campaign = Campaign(
            name: "new-podcast", topic: "com.example.wendercast", pushType: .alert, template: "new-podcast")
        return RunDefinition(
            campaign: campaign, template: Template(name: "new-podcast"), variables: [:], plannedAt: noon)
    }
}
