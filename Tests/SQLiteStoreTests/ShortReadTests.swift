import Foundation
import GRDB
import GRDBSQLite
import Model
@testable import SQLiteStore
import Store
import StoreContract
import Synchronization
import Testing

/// A read that calls itself short touches few rows, however much the store holds: everything else waits for them.
@Suite(.timeLimit(.minutes(10))) struct `Short reads` {
    /// Two a day for ten years.
    private static let runs = 8_000
    private static let deliveries = 200_000
    /// In steps of SQLite's machine: some milliseconds.
    private static let stepsMax = 300_000

    private typealias Read = @Sendable (SQLiteFileStore) async throws -> Void

    /// Every short read that could touch many rows, by the name of its function.
    private static let reads: [(name: String, read: Read)] = [
        ("accessTokens", { _ = try await $0.accessTokens() }),
        ("hasAccessTokens", { _ = try await $0.hasAccessTokens() }),
        ("approvals", { _ = try await $0.approvals(in: [.open], limit: 100) }),
        ("awaitedApprovals", { _ = try await $0.awaitedApprovals(rejectedSince: noon, limit: 100) }),
        ("latestSignedRun", { _ = try await $0.latestSignedRun(campaign: "large") }),
        ("contributors", { _ = try await $0.contributors(campaign: "large", occurrence: "", digest: "d") }),
        ("openApprovals", { _ = try await $0.openApprovals(startingWith: "a", limit: 100) }),
        ("pendingChanges", { _ = try await $0.pendingChanges() }),
        ("fields", { _ = try await $0.fields([.country], ofDevice: 1) }),
        ("daemon", { _ = try await $0.daemon() }),
        ("feedState", { _ = try await $0.feedState(campaign: "large") }),
        ("scheduleMarks", { _ = try await $0.scheduleMarks() }),
        ("seenFeedItems", { _ = try await $0.seenFeedItems(campaign: "large", among: ["a", "b"]) }),
        ("nextWebhookMessage", { _ = try await $0.nextWebhookMessage() }),
        ("abandonedLeases", { _ = try await $0.abandonedLeases(1) }),
        ("runsWithLeases", { _ = try await $0.runsWithLeases() }),
        ("device", { _ = try await $0.device(1) }),
        ("topics", { _ = try await $0.topics() }),
        ("keptReport", { _ = try await $0.keptReport(1) }),
        ("summary", { _ = try await $0.summary(run: 1) }),
        ("clockSteps", { _ = try await $0.clockSteps(since: noon) }),
        ("events", { _ = try await $0.events(run: 1, since: nil, limit: 100) }),
        ("haltedRuns", { _ = try await $0.haltedRuns() }),
        ("knownOccurrences", { _ = try await $0.knownOccurrences(of: "large", among: ["x", "y"]) }),
        ("latestRun", { _ = try await $0.latestRun(campaign: "large") }),
        ("latestRun", { _ = try await $0.latestRun(campaign: "large", state: .running) }),
        ("openFeedRuns", { _ = try await $0.openFeedRuns(campaign: "large") }),
        ("openRuns", { _ = try await $0.openRuns(for: "b", inHand: []) }),
        ("run", { _ = try await $0.run(1) }), ("run", { _ = try await $0.run(campaign: "large", occurrence: "x") }),
        ("runs", { _ = try await $0.runs(limit: 100) }),
        ("runs", { _ = try await $0.runs(RunFilter(states: [.failed]), before: nil, limit: 100) }),
        ("unfinishedRuns", { _ = try await $0.unfinishedRuns(campaign: "large", occurrencePrefix: "timer") }),
        ("listedRuns", { _ = try await $0.listedRuns(RunFilter(states: [.failed]), before: nil, limit: 100) }),
        ("unreadableRuns", { _ = try await $0.unreadableRuns() }),
        ("tokenNames", { _ = try await $0.tokenNames(of: [1, 2]) }),
        ("abandonedRuns", { _ = try await $0.abandonedRuns() }),
        ("runs", { _ = try await $0.runs(of: "a") }),
        ("ownersOnRecord", { _ = try await $0.ownersOnRecord() }),
        ("takeOverLeases", { _ = try await $0.takeOverLeases(of: 1, besides: nil) }),
        ("remaining", { _ = try await $0.claim(1, by: "a", now: noon) }), ("holds", { _ = try await $0.holds(of: 1) }),
        ("waits", { _ = try await $0.waits(of: 1, now: noon) }), ("stops", { _ = try await $0.stops() }),
        ("setFeedbackAside", { _ = try await $0.setFeedbackAside(opens) }),
        ("waitingFeedback", { _ = try await $0.waitingFeedback() }),
        ("recordWaitingFeedback", { try await $0.recordWaitingFeedback() }),
        ("recordFeedback", { _ = try await $0.recordFeedback(opens) }),
        ("firstFeedback", { _ = try await $0.firstFeedback() }),
        ("feedbackRemoval", { _ = try await $0.feedbackRemoval() }),
        ("installation", { _ = try await $0.installation(secretHash: []) }),
        ("segmentUsers", { _ = try await $0.segmentUsers(of: ["a"]) }),
        ("stages", { _ = try await $0.stages(of: 1) }), ("arrival", { _ = try await $0.arrival() }),
        ("departure", { _ = try await $0.departure() }), ("highestNumbers", { _ = try await $0.highestNumbers() }),
        ("isEmpty", { _ = try await $0.isEmpty() }), ("observation", { _ = try await $0.observation(now: noon) }),
        ("size", { _ = try await $0.size() }),
    ]

    /// As many as one request can have.
    private static let opens = (1...1_000).map { number in
        FeedbackEvent(
            source: .push(run: 1, device: Int64(number) * 200), kind: .opened, id: (high: 0, low: 0), at: noon,
            receivedAt: noon)
    }

    /// Reads by one unique key, or of tables with a few rows.
    private static let byKey: Set = [
        "accessToken", "session", "approval", "pendingChange", "providerToken", "setWebhooks", "keepWebhooks",
        "noteClocks",
        "savedPlan", "savedPlans", "values",
        "volumeHold", "makeDeferredIndexes", "runsToPrune", "restoreGap",
    ]

    @Test func `touch few rows of a large store`() async throws {
        try await withStore { store in
            try await Self.fill(store)
            let probe = StepProbe()
            try await probe.attach(to: store)
            for (name, read) in Self.reads {
                let steps = try await probe.steps { try await read(store) }
                #expect(steps <= Self.stepsMax, "\(name): \(steps.formatted()) steps")
            }
            // What the probe is for: it does see a read that goes through the whole store.
            let whole = try await probe.steps {
                _ = try await store.read(.short) { try Int.fetchOne($0, sql: "SELECT sum(device_id) FROM delivery") }
            }
            #expect(whole > Self.stepsMax)
        }
    }

    @Test func `are all looked at`() throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources")
        let files = ["SQLiteStore", "RelationalStore"].flatMap { target in
            FileManager.default.enumerator(
                at: sources.appending(path: target), includingPropertiesForKeys: nil)?.allObjects ?? []
        }
        var found: Set<String> = []
        for file in files.compactMap({ $0 as? URL }) where file.pathExtension == "swift" {
            var function = ""
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                if let name = line.firstMatch(of: /func (\w+)/)?.1 { function = String(name) }
                if line.contains("read(.short") || line.contains("snapshot(.short") { found.insert(function) }
            }
        }
        #expect(found == Self.byKey.union(Self.reads.map(\.name)))
    }

    @Test func `count a large wave up to a limit, and say that more wait`() async throws {
        try await withStore { store in
            try await Self.fill(store)
            let group = try #require(try await store.waits(of: 1, now: noon).groups.first)
            #expect(group.deliveries == WaitingDelivery.countMax && group.isMore)
        }
    }

    /// One run with very many deliveries, all of which wait for one moment, and very many runs that are over.
    private static func fill(_ store: SQLiteFileStore) async throws {
        _ = try await store.importDevices([try record(1)], now: noon)
        let run = try await store.startRun(try definition("large"))
        #expect(run == 1)
        let (production, due) = (PushEnvironment.production.code, (noon + .seconds(3600)).milliseconds)
        try await store.pool.write { db in
            let columns = try db.columns(in: "run").map(\.name).filter { $0 != "id" }
            let values = columns.map { column in
                switch column {
                case "occurrence": "'o' || n"
                case "state": "'finished'"
                case "owner": "NULL"
                case "pending", "leased": "0"
                default: column
                }
            }
            try db.execute(
                sql: """
                    WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < \(runs))
                    INSERT INTO run (\(columns.joined(separator: ", ")))
                    SELECT \(values.joined(separator: ", ")) FROM series, run WHERE run.id = 1;
                    WITH RECURSIVE series (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM series WHERE n < \(deliveries))
                    INSERT INTO delivery (
                        run_id, device_id, environment, state, attempt, doubts, generation, not_before, status,
                        changed_at
                    )
                    SELECT 1, n, \(production), 0, 0, 0, 1, \(due), 0, \(noon.milliseconds) FROM series;
                    UPDATE run SET audience = \(deliveries), pending = \(deliveries), heartbeat_at = NULL WHERE id = 1;
                    """)
        }
    }
}

/// Counts the steps that the connections for short reads make.
private final class StepProbe: Sendable {
    private static let every: Int32 = 1_000
    private let ticks = Mutex(0)
    private let connectionsMet = Mutex(0)

    /// The probe must outlive the store's connections.
    func attach(to store: SQLiteFileStore) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            // All of them at the same time, so that each is met.
            for _ in 0..<StoreLimits.readersMax {
                group.addTask {
                    try await store.pool.read { db in
                        sqlite3_progress_handler(
                            db.sqliteConnection, Self.every,
                            { probe in
                                guard let probe else { return 0 }
                                Unmanaged<StepProbe>.fromOpaque(probe).takeUnretainedValue().ticks.withLock { $0 += 1 }
                                return 0
                            }, Unmanaged.passUnretained(self).toOpaque())
                        self.connectionsMet.withLock { $0 += 1 }
                        while self.connectionsMet.withLock({ $0 < StoreLimits.readersMax }) { sched_yield() }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    func steps(_ body: () async throws -> Void) async throws -> Int {
        let before = ticks.withLock { $0 }
        try await body()
        return (ticks.withLock { $0 } - before) * Int(Self.every)
    }
}
