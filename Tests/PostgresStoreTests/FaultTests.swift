import Foundation
import Model
import Platform
@testable import PostgresStore
import TestSupport
import Testing

/// What the server says no to, and what becomes of a call that nobody waits for.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct FaultTests {
    @Test(arguments: [
        ("INSERT INTO thing VALUES (1)", ServerFault.Kind.uniqueViolation),
        ("INSERT INTO thing VALUES (NULL)", .constraintViolation), ("SELECT * FROM nothing", .undefinedObject),
        ("CREATE TABLE thing (id bigint)", .duplicateObject), ("SELEKT", .other),
        ("SET LOCAL lock_timeout = 1; LOCK TABLE held", .lockTimeout),
        ("SET LOCAL statement_timeout = 1; SELECT pg_sleep(10)", .cancelled),
        ("SET LOCAL transaction_read_only = on; INSERT INTO thing VALUES (2)", .readOnly),
        ("SET LOCAL ROLE nobody; INSERT INTO thing VALUES (2)", .permission),
        ("DO $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$", .diskFull),
        ("DO $$ BEGIN RAISE 'full' USING ERRCODE = '53200'; END $$", .outOfMemory),
        ("DO $$ BEGIN RAISE 'broken' USING ERRCODE = 'XX001'; END $$", .damaged),
    ])
    func `an error says of which kind it is`(sql: String, kind: ServerFault.Kind) async throws {
        try await withPool { pool in
            try await pool.write { db in
                try db.run(
                    """
                    CREATE TABLE thing (id bigint PRIMARY KEY); INSERT INTO thing VALUES (1); CREATE TABLE held ();
                    DO $$ BEGIN CREATE ROLE nobody; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$
                    """)
            }
            try await withHeldLock(on: "held", pool) {
                let error = await postgresError { try await pool.write { try $0.run(sql) } }
                #expect(error?.kind == kind)
                #expect(error.map { !"\($0)".contains("\n") && "\($0)".contains("postgres://") } == true)
            }
            #expect(try await pool.write { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 1)
        }
    }

    @Test func `the row that an error quotes is not in its description`() async throws {
        try await withPool { pool in
            let error = await postgresError {
                try await pool.write { db in
                    try db.run("CREATE TABLE thing (token bytea PRIMARY KEY)")
                    for _ in 0..<2 {
                        try db.execute("INSERT INTO thing VALUES ($1)", [UInt8](repeating: 0xAB, count: 32))
                    }
                }
            }
            guard case .refused(let fault, _) = error else { return #expect(error != nil) }
            #expect(fault.detail?.contains("abab") == true && fault.constraint == "thing_pkey")
            #expect(error.map { !"\($0)".contains("abab") } == true)
        }
    }

    @Test func `a cancelled read ends at once, and the server does not go on with it`() async throws {
        try await withPool { pool in
            let reading = Task {
                try await pool.read { db in try db.run("SELECT pg_sleep(600)") }
            }
            try await waitUntil(
                pool, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600%'")
            reading.cancel()
            await #expect(throws: CancellationError.self) { try await reading.value }
            try await waitUntil(
                pool,
                "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600%' AND state = 'active'"
            )
            #expect(try await pool.read { try $0.first("SELECT 1") { try $0.int(0) } } == 1)
        }
    }

    @Test func `a read that waits for its turn ends at once when it is cancelled`() async throws {
        try await withPool(readers: 1) { pool in
            let busy = Task { try await pool.read { db in try db.run("SELECT pg_sleep(601)") } }
            try await waitUntil(
                pool, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(601%'", by: .writer)
            let waiting = Task { try await pool.read { _ in 1 } }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            busy.cancel()
            _ = await busy.result
        }
    }

    @Test func `a write that has begun is finished, whoever cancels`() async throws {
        try await withPool { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint); CREATE TABLE held ()") }
            let writing = try await withHeldLock(on: "held", pool) {
                let writing = Task {
                    try await pool.write { db in
                        try db.run("LOCK TABLE held")
                        try db.execute("INSERT INTO thing VALUES (1)")
                    }
                }
                // Other suites wait for locks of the same server.
                try await waitUntil(
                    pool,
                    """
                    SELECT count(*) > 0 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
                    WHERE NOT granted AND datname = current_database()
                    """)
                writing.cancel()
                return writing
            }
            _ = try await writing.value
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 1)
        }
    }

    /// Whoever was told to stop records what it has heard.
    @Test func `a write is made in a cancelled task as well`() async throws {
        try await withPool { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint)") }
            let writing = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await pool.write { try $0.execute("INSERT INTO thing VALUES (1)") }
            }
            _ = try await writing.value
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 1)
        }
    }

    @Test func `a call that takes too long is stopped`() async throws {
        try await withPool(readers: 1) { pool in
            // So short a time is for the statement, not for the connection.
            try await pool.read { _ in }
            let error = await postgresError {
                try await pool.read(.reading.within(.milliseconds(100))) { try $0.run("SELECT pg_sleep(602)") }
            }
            guard case .timedOut = error else { return #expect(error == nil) }
            try await waitUntil(
                pool,
                "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(602%' AND state = 'active'"
            )
            #expect(try await pool.read { try $0.first("SELECT 1") { try $0.int(0) } } == 1)
        }
    }

    @Test func `a writer that stands still in mid-transaction holds others up for a while, and not for ever`()
        async throws
    {
        try await withPool(writers: 2) { pool in
            try await pool.write { db in
                try db.run("CREATE TABLE thing (id bigint, n bigint); INSERT INTO thing VALUES (1, 0)")
            }
            let isHeld = DispatchSemaphore(value: 0)
            let mayGoOn = DispatchSemaphore(value: 0)
            let standing = Task {
                // Also where a busy machine does not come as far as the UPDATE in time.
                defer { isHeld.signal() }
                try await pool.write(.durable.within(.seconds(3))) { db in
                    try db.execute("UPDATE thing SET n = 1")
                    isHeld.signal()
                    mayGoOn.wait()
                    try db.execute("UPDATE thing SET n = 2")
                }
            }
            try await OwnThread.run { isHeld.wait() }
            try await pool.write { try $0.execute("UPDATE thing SET n = 3") }
            mayGoOn.signal()
            let error = await postgresError { try await standing.value }
            #expect(error != nil)
            #expect(try await pool.read { try $0.first("SELECT n FROM thing") { try $0.int(0) } } == 3)
        }
    }

    @Test func `closing ends what is under way, and leaves no connection`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await withPool(cluster.url("postgres")) { observer in
            let pool = PostgresPool(try PostgresAddress(cluster.url(database)))
            let reading = Task { try await pool.read { try $0.run("SELECT pg_sleep(603)") } }
            try await waitUntil(
                observer, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(603%'")
            await pool.close()
            guard case .closed = await postgresError({ try await reading.value }) else { return #expect(Bool(false)) }
            guard case .closed = await postgresError({ try await pool.write { _ in } }) else {
                return #expect(Bool(false))
            }
            try await waitUntil(
                observer, "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = '\(database)'")
        }
    }

    @Test func `a server that cannot be reached is asked again later each time, and not for ever later`() {
        var waits = PostgresLimits.reconnects
        waits.jitter = { 0 }
        var backoff = ReconnectBackoff(waits)
        var now = ContinuousClock.now
        #expect(backoff.mayTry(at: now))
        for milliseconds in [100, 200, 400, 800, 1000, 1000] {
            backoff.failed(at: now)
            #expect(!backoff.mayTry(at: now + .milliseconds(milliseconds - 1)))
            now += .milliseconds(milliseconds)
            #expect(backoff.mayTry(at: now))
        }
    }
}

enum Side { case reader, writer }

/// Asks the server until it says yes.
func waitUntil(_ pool: PostgresPool, _ question: String, by side: Side = .reader) async throws {
    while true {
        let ask: @Sendable (PostgresSession) throws -> Bool = { db in
            try db.run("SELECT pg_stat_clear_snapshot()")
            return try db.first(.once("SELECT (\(question))")) { try $0.bool(0) } ?? false
        }
        let isSo = side == .reader ? try await pool.read(.reading, ask) : try await pool.write(.durable, ask)
        if isSo { return }
    }
}

/// While `body` runs, somebody else has the table.
func withHeldLock<Value: Sendable>(
    on table: String, _ pool: PostgresPool, _ body: () async throws -> Value
) async throws -> Value {
    let holder = PostgresPool(pool.address)
    let isHeld = DispatchSemaphore(value: 0)
    let isOver = DispatchSemaphore(value: 0)
    let holding = Task {
        try await holder.write { db in
            try db.standStill()
            try db.run("LOCK TABLE \(table)")
            isHeld.signal()
            isOver.wait()
        }
    }
    try await OwnThread.run { isHeld.wait() }
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    isOver.signal()
    try await holding.value
    await holder.close()
    return try result.get()
}
