import Foundation
import Model
@testable import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// A read that calls itself short touches few blocks, however many devices and deliveries the store holds.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Short reads on a server` {
    private static let devices = 20_000
    /// Of one run; all of them take some 5,000 blocks, and the runs take 2,000.
    private static let deliveries = 200_000
    private static let runs = 10_000
    /// A few times what the largest of these reads takes: ten thousand entries of an index, or the rows of a hundred
    /// runs.
    private static let blocksMax = 1_000
    /// A thousand deliveries, each with its device.
    private static let waitsMax = 4_000
    /// Other sessions of the database may be counted as well: the least of so many counts is the read's own.
    private static let counts = 3

    private static let opens = (1...20).map { number in
        FeedbackEvent(
            source: .push(run: 1, device: number), kind: .opened, id: (high: 0, low: 0), at: noon, receivedAt: noon)
    }

    private typealias Read = @Sendable (PostgresDatabase) async throws -> Void

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
        ("runs", { _ = try await $0.runs(of: "a") }), ("restoreGap", { _ = try await $0.restoreGap() }),
        ("ownersOnRecord", { _ = try await $0.ownersOnRecord() }),
        ("remaining", { _ = try await $0.claim(1, by: "a", now: noon) }), ("holds", { _ = try await $0.holds(of: 1) }),
        ("waits", { _ = try await $0.waits(of: 1, now: noon) }), ("stages", { _ = try await $0.stages(of: 1) }),
        ("stops", { _ = try await $0.stops() }),
        ("setFeedbackAside", { _ = try await $0.setFeedbackAside(opens) }),
        ("waitingFeedback", { _ = try await $0.waitingFeedback() }),
        ("recordWaitingFeedback", { try await $0.recordWaitingFeedback() }),
        ("recordFeedback", { _ = try await $0.recordFeedback(opens) }),
        ("firstFeedback", { _ = try await $0.firstFeedback() }),
        ("feedbackRemoval", { _ = try await $0.feedbackRemoval() }),
        ("installation", { _ = try await $0.installation(secretHash: []) }),
        ("segmentUsers", { _ = try await $0.segmentUsers(of: ["a"]) }),
        ("arrival", { _ = try await $0.arrival() }), ("departure", { _ = try await $0.departure() }),
        ("highestNumbers", { _ = try await $0.highestNumbers() }), ("isEmpty", { _ = try await $0.isEmpty() }),
        ("observation", { _ = try await $0.observation(now: noon) }), ("size", { _ = try await $0.size() }),
        ("senders", { _ = try await $0.senders() }), ("endedLately", { _ = try await $0.endedLately() }),
    ]

    /// Reads by one unique key, of tables with a few rows, and those of a move, of upkeep and of verify.
    private static let byKey: Set = [
        "accessToken", "session", "approval", "pendingChange", "providerToken", "setWebhooks", "keepWebhooks",
        "noteClocks",
        "savedPlan", "savedPlans", "values",
        "volumeHold", "runsToPrune", "readClock", "readyRuns", "audienceSQLObstacle", "freeze", "importSegment",
        "shrink",
    ]

    @Test func `touch few blocks of a large store`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await Self.fill(cluster, database)
        // One reading connection, which counts what it has read.
        let pool = PostgresPool(try PostgresAddress(cluster.url(database)), writers: 1, readers: 1)
        let store = PostgresDatabase(
            pool, namespace: (high: 0, low: 0), departed: nil, takeoverAfter: nil, isAlive: { _ in true })
        defer { try? store.close() }
        for (name, read) in Self.reads {
            let blocks = try await Self.blocks(of: store) { try await read(store) }
            let most = name == "waits" ? Self.waitsMax : Self.blocksMax
            #expect(blocks <= most, "\(name): \(blocks.formatted()) blocks")
        }
        // What the count is for: it does see a read that goes through a whole table.
        let whole = try await Self.blocks(of: store) {
            _ = try await store.read(.short) { db in
                try db.first("SELECT sum(generation)::bigint FROM delivery_1") { try $0.int(0) }
            }
        }
        #expect(whole > Self.blocksMax, "\(whole) blocks")
    }

    @Test func `are all looked at`() throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources")
        let files = ["PostgresStore", "RelationalStore"].flatMap { target in
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

    /// The first time a session also reads the catalogues, which is not counted.
    private static func blocks(of store: PostgresDatabase, _ read: () async throws -> Void) async throws -> Int {
        try await read()
        var least = Int.max
        for _ in 0..<counts {
            let before = try await fetched(store)
            try await read()
            let after = try await fetched(store)
            least = min(least, after - before)
        }
        return least
    }

    /// Blocks that the database's sessions have asked for, found in memory or not. A session adds what it has read to
    /// the database's count between two transactions, and mostly at most once a second.
    private static func fetched(_ store: PostgresDatabase) async throws -> Int {
        _ = try await store.read(.short) { db in
            try db.first("SELECT 1 FROM pg_stat_force_next_flush()") { try $0.int(0) }
        }
        let blocks = try await store.read(.short) { db in
            try db.first(
                "SELECT pg_stat_get_db_blocks_fetched(oid) FROM pg_database WHERE datname = current_database()"
            ) { try $0.int(0) }
        }
        return blocks ?? 0
    }

    /// One run with very many deliveries, all of which wait for one moment, and some runs that are over.
    private static func fill(_ cluster: PostgresCluster, _ database: String) async throws {
        let store = try await PostgresDatabase.open(url: cluster.url(database), time: .caller)
        defer { try? store.close() }
        _ = try await store.importDevices(try (1...devices).map { try record($0) }, now: noon)
        let run = try await store.startRun(try definition("large"))
        #expect(run == 1)
        try store.close()
        try await OwnThread.run { try fillByHand(cluster, database) }
    }

    private static func fillByHand(_ cluster: PostgresCluster, _ database: String) throws {
        func sql(_ text: String) throws -> String { try cluster.sql(text, database: database) }
        let (production, due) = (PushEnvironment.production.code, (noon + .seconds(3600)).milliseconds)
        let columns = try sql(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'run' AND column_name <> 'id'"
        ).split(separator: "\n").map(String.init)
        let values = columns.map { column in
            switch column {
            case "occurrence": "'o' || n"
            case "state": "'finished'"
            case "owner": "NULL"
            case "pending", "leased": "0"
            default: column
            }
        }
        _ = try sql(
            """
            INSERT INTO run (\(columns.joined(separator: ", ")))
            SELECT \(values.joined(separator: ", ")) FROM generate_series(2, \(runs)) AS n, run WHERE run.id = 1
            """)
        _ = try sql("UPDATE delivery_1 SET not_before = \(due)")
        _ = try sql(
            """
            INSERT INTO delivery_1 (
                run_id, device_id, environment, state, attempt, doubts, excused, leases, generation, not_before, status,
                changed_at
            )
            SELECT 1, n, \(production), 0, 0, 0, 0, 0, 1, \(due), 0, \(noon.milliseconds)
            FROM generate_series(\(10 * devices), \(10 * devices + deliveries)) AS n
            """)
        _ = try sql("DELETE FROM chunk")
        _ = try sql(
            "UPDATE run SET audience = counted, pending = counted, heartbeat_at = NULL FROM ("
                + "SELECT count(*) AS counted FROM delivery_1) AS all_of_it WHERE id = 1")
        _ = try sql("VACUUM ANALYZE")
        // What a session has read is added to the database's count at its end.
        let others =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)' AND backend_type = 'client backend'"
        try Patience.wait(for: "the end of other sessions") { try cluster.sql(others) == "0" }
    }
}
