import Campaigns
import Model
import SQLiteStore
import Senders
import Sending
import Store
import Synchronization
import TestSupport
import Testing

/// Who brings a run to its end, and who is waited for.
@Suite(.timeLimit(.minutes(10)))
struct ExecuteRunTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)
    private static let clock = WallClock(now: { noon }, uptime: { .zero }, sleep: { _ in })

    /// A run that paused itself since APNs could not be reached, and that the caller finds so.
    private static func pausedRun(in store: SQLiteFileStore) async throws -> Run {
        let campaign = Campaign(
            name: "new-podcast", topic: "com.example.wendercast", pushType: .alert, template: "new-podcast")
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "new-podcast"), variables: [:], plannedAt: noon)
        let run = try await store.createRun(definition, occurrence: "once", now: noon, by: "amy").run
        _ = try await store.claim(run.id, by: "daemon", now: noon)
        try await store.release(run.id, by: "daemon", state: .paused, reason: "away", halt: .unreachable, now: noon)
        return try #require(try await store.run(run.id))
    }

    /// - Parameter owner: who took the run between the caller's look and its own attempt, and ended it.
    private static func end(takenBy owner: String, wait: Bool?) async throws -> RunEnd? {
        let folder = try TemporaryDirectory()
        let store = try SQLiteFileStore(path: folder.file("fanfare.sqlite"))
        let run = try await pausedRun(in: store)
        _ = try await store.becomeDaemon(owner: "daemon", now: noon)
        let senders = SenderFolder(besideStore: folder.file("fanfare.sqlite"), command: "test", now: { noon })
        let execute = ExecuteRun(
            runs: FollowRuns(store: store, senders: senders, clock: clock),
            observer: .init(note: { _ in }, watching: { watch in try await watch { _, _ in } }), wait: wait
        ) { run in
            try await store.change(run.id, to: .cancelled, reason: nil, now: noon, by: "amy")
            return .busy(owner: owner, heartbeat: noon)
        }
        let end = try await execute.execute(run)
        try store.close()
        return end
    }

    @Test func `a run that the daemon took up a moment before is waited for, another process only on request`()
        async throws
    {
        #expect(try await Self.end(takenBy: "daemon", wait: nil) == .cancelled)
        #expect(try await Self.end(takenBy: "other", wait: nil) == .busy(owner: "other", heartbeat: Self.noon))
        #expect(try await Self.end(takenBy: "other", wait: true) == .cancelled)
    }

    /// A process of an earlier boot is known to have ended.
    @Test func `a run that is held in the name of a process that has ended is asked for again, and not for ever`()
        async throws
    {
        for busy in [1, 2, 100] {
            let folder = try TemporaryDirectory()
            let store = try SQLiteFileStore(path: folder.file("fanfare.sqlite"))
            let run = try await Self.pausedRun(in: store)
            let senders = SenderFolder(
                besideStore: folder.file("fanfare.sqlite"), command: "test", now: { Self.noon })
            let attempts = Mutex(0)
            let execute = ExecuteRun(
                runs: FollowRuns(store: store, senders: senders, clock: Self.clock),
                observer: .init(note: { _ in }, watching: { watch in try await watch { _, _ in } }), wait: nil
            ) { _ in
                let attempt = attempts.withLock { attempts in
                    attempts += 1
                    return attempts
                }
                return attempt <= busy ? .busy(owner: "web1:4711:5:1:earlier", heartbeat: Self.noon) : .finished
            }
            let end = try await execute.execute(run)
            #expect((end == .finished) == (busy <= 2) && attempts.withLock { $0 } == min(busy + 1, 3))
            try store.close()
        }
    }
}
