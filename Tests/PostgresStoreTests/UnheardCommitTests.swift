import Foundation
import Model
@testable import PostgresStore
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

/// A connection that is cut around a COMMIT: whether it was carried out or never arrived, the call does what it is to
/// do, once, and says so.
@Suite(.serialized, .timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct UnheardCommitTests {
    /// Something a store is told to do, on its way through a proxy, and how to see that it was done once.
    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// A text of the transaction whose COMMIT is cut.
        let text: String
        /// Returns what is needed below: the run.
        let prepare: @Sendable (PostgresDatabase) async throws -> Int64
        let make: @Sendable (PostgresDatabase, Int64) async throws -> Void
    }

    @Test(arguments: changes, [true, false])
    func `a change whose commit was not answered is made once`(_ change: Change, isCarriedOut: Bool) async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let direct = try await PostgresDatabase.open(url: cluster.url(database), time: .caller)
        let proxy = try CuttingProxy(to: cluster)
        let store = try await PostgresDatabase.open(url: proxy.url(database), time: .caller)
        let result: Result<Void, any Error>
        do {
            let run = try await change.prepare(direct)
            proxy.cut(isCarriedOut ? .beforeAnswer(to: "COMMIT\0") : .before("COMMIT\0"), behind: change.text)
            try await change.make(store, run)
            #expect(proxy.cuts == 1)
            let verification = try await direct.verify(budgets: [:])
            #expect(verification.isSound, "\(verification)")
            result = .success(())
        } catch {
            result = .failure(error)
        }
        try direct.close()
        try store.close()
        try result.get()
    }

    /// The connection stays open, and the next transaction on it begins as usual.
    @Test func `a commit of which the server does not know the outcome is tried again on the same connection`()
        async throws
    {
        try await withPool { pool in
            try await pool.write(.quick) { db in
                try db.run(
                    """
                    CREATE TABLE odd (id int);
                    CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql
                        AS $$ BEGIN RAISE EXCEPTION 'not known' USING ERRCODE = '40003'; END $$;
                    CREATE CONSTRAINT TRIGGER odd AFTER INSERT ON odd DEFERRABLE INITIALLY DEFERRED
                        FOR EACH ROW EXECUTE FUNCTION odd()
                    """)
            }
            let error = await postgresError {
                try await pool.write(.durable) { try $0.run("INSERT INTO odd VALUES (1)") }
            }
            guard case .outcomeUnknown = error else {
                Issue.record("\(error.map { "\($0)" } ?? "committed")")
                return
            }
            try await pool.write(.durable) { try $0.run("DELETE FROM odd") }
        }
    }

    private static func campaign(_ name: String = "new-podcast") throws -> RunDefinition { try definition(name) }

    private static let leased: @Sendable (PostgresDatabase) async throws -> Int64 = { store in
        _ = try await store.importDevices([try record(1), try record(2)], now: noon)
        return try await store.startRun(try campaign())
    }

    private static let changes = [
        Change(testDescription: "a lease", text: "INSERT INTO lease", prepare: leased) { store, run in
            let lease = try await store.lease(run)
            #expect(lease.deliveries.count == 2)
            #expect(try await store.abandonedLeases(run).map(\.id) == [lease.id])
            #expect(try await store.summary(run: run).leased == 2)
        },
        Change(testDescription: "a settlement", text: "UPDATE delivery_", prepare: leased) { store, run in
            let lease = try await store.lease(run)
            let counts = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(counts.accepted == 2 && counts.leased == 0)
        },
        Change(testDescription: "a recovery", text: "DELETE FROM lease", prepare: leased) { store, run in
            _ = try await store.lease(run)
            let recovered = try await store.recover(run, now: noon)
            #expect(recovered.leases == 1 && recovered.resent == 2)
            #expect(try await store.summary(run: run).pending == 2)
        },
        Change(testDescription: "a release", text: "DELETE FROM run_sender", prepare: leased) { store, run in
            try await store.release(run, by: "a", state: .paused, reason: "x", halt: nil, now: noon)
            let found = try #require(try await store.run(run))
            #expect(found.owner == nil && found.state == .paused)
            #expect(try await events(store, "run_paused") == 1)
        },
        Change(testDescription: "a freeze", text: "COPY delivery_") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.createRun(try campaign(), occurrence: "x", now: noon, by: "test").run.id
            #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
            return run
        } make: { store, run in
            let counts = try await store.freeze(run, by: "a", now: noon) { _ in }
            #expect(counts.audience == 2 && counts.pending == 2)
        },
        Change(testDescription: "a new run", text: "INSERT INTO run", prepare: { _ in 0 }) { store, _ in
            let made = try await store.createRun(try campaign(), occurrence: "x", now: noon, by: "test")
            #expect(made.isNew)
            let count = try await events(store, "run_created")
            #expect(count == 1)
        },
        Change(testDescription: "a test run", text: "INSERT INTO run") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            return 1
        } make: { store, device in
            let run = try await store.createTestRun(
                try campaign(), occurrence: "test", device: device, variant: nil, now: noon, by: "test")
            #expect(run.counts.audience == 1 && run.isTest)
        },
        Change(testDescription: "a session", text: "INSERT INTO web_session", prepare: { _ in 0 }) { store, _ in
            let session = WebSession(
                name: "ben", role: .sender, topic: nil, token: nil, createdAt: noon, expiresAt: noon + .seconds(60),
                endsAt: noon + .seconds(100))
            let isMade = try await store.createSession(session, secretHash: "00", by: "ben")
            #expect(isMade)
            #expect(try await events(store, "signed_in") == 1)
        },
        Change(testDescription: "an access token", text: "INSERT INTO access_token", prepare: { _ in 0 }) { store, _ in
            let token = AccessToken(
                id: 0, name: "anna", role: .sender, topic: nil, createdAt: noon, createdBy: "amy", expiresAt: nil,
                revokedAt: nil, lastUsedAt: nil)
            let made = try await store.createAccessToken(token, secretHash: "00", by: "amy")
            #expect(try await store.accessTokens() == [made])
        },
        Change(testDescription: "a step of the clock", text: "clock_step SET is_told") { store in
            _ = try await store.noteClocks(ClockReading(wall: noon, uptime: .seconds(1), boot: "a"), by: "a")
            return 0
        } make: { store, _ in
            let set = ClockReading(wall: noon + .seconds(100), uptime: .seconds(2), boot: "a")
            let step = try await store.noteClocks(set, by: "a")
            #expect(step?.by == .seconds(99))
            let steps = try await store.clockSteps(since: noon)
            #expect(steps.count == 1)
        },
    ]

    private static func events(_ store: PostgresDatabase, _ kind: String) async throws -> Int {
        try await store.events(EventFilter(kind: kind), before: nil, limit: 9).events.count
    }

    /// A number that another server gave, or the same one before it crashed, may be another transaction's by now.
    @Test func `a server that was started again is not asked what became of a commit`() async throws {
        let own = try await PostgresCluster.own()
        try await withPool(own.url("postgres")) { pool in
            let mark = try await pool.write { $0.mark }
            let known = try #require(mark)
            let other = { @Sendable (number: String, checkpoint: String) in
                CommitMark(transaction: number, serverStart: "2026-01-01 00:00:00+00", checkpoint: checkpoint)
            }
            let endings = try await pool.session { db in
                try [
                    known.ending(db), other(known.transaction, known.checkpoint).ending(db),
                    other("999999999", known.checkpoint).ending(db),
                    CommitMark(transaction: known.transaction, serverStart: known.serverStart, checkpoint: "")
                        .ending(db),
                ]
            }
            #expect(endings == [.committed, .forgotten, .forgotten, .forgotten])
        }
    }

    /// A server process is killed, as by the kernel for want of memory. The server recovers and keeps its start time;
    /// it has lost what was not on disk, and gives the lost transaction's number to another one, which commits.
    @Test func `a commit lost in a crash of the server's processes is not taken for another one's`() async throws {
        var options = PostgresCluster.Options()
        options.settings = ["wal_writer_delay": "10000", "bgwriter_delay": "10000", "autovacuum": "off"]
        let own = try await PostgresCluster.own(options)
        try await withPool(own.url("postgres")) { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint)") }
            let mark = Mutex<CommitMark?>(nil)
            let process = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
            let before = try await OwnThread.run { try own.sql(process) }
            let error = await postgresError {
                try await pool.write(.quick) { db in
                    try db.execute("INSERT INTO thing VALUES (1)")
                    mark.withLock { $0 = db.mark }
                    if let process = try db.first("SELECT pg_backend_pid()", read: { try $0.int(0) }) {
                        kill(pid_t(process), SIGKILL)
                    }
                    try db.execute("INSERT INTO thing VALUES (2)")
                }
            }
            guard case .connectionLost = error else { return #expect(error == nil) }
            let lost = try #require(mark.withLock { $0 })
            let start = try await OwnThread.run {
                // Until the server has noticed and started its processes anew, it ends who asks it.
                try Patience.wait(for: "the server to recover") {
                    let now = (try? own.sql(process)) ?? ""
                    return !now.isEmpty && now != before
                }
                // Others use up the numbers until the lost one is given again.
                while Int64(try own.sql("SELECT pg_current_xact_id()")) ?? 0 < Int64(lost.transaction) ?? 0 {}
                return try own.sql("SELECT pg_postmaster_start_time()::text")
            }
            #expect(start == lost.serverStart)
            let status = try await OwnThread.run { try own.sql("SELECT pg_xact_status('\(lost.transaction)'::xid8)") }
            let ending = try await pool.session { db in try lost.ending(db) }
            // Another transaction's: of ours nothing is left.
            #expect(status == "committed" && ending == .forgotten)
            #expect(try await OwnThread.run { try own.sql("SELECT count(*) FROM thing") } == "0")
        }
    }

    /// Its COMMIT was not answered, and the sender then lets go of the run: nobody else could give the lease back for
    /// as long as the sender lives.
    @Test func `a lease in doubt is given back when its run is released`() async throws {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        let direct = try await PostgresDatabase.open(url: cluster.url(database), time: .caller)
        let proxy = try CuttingProxy(to: cluster)
        let store = try await PostgresDatabase.open(url: proxy.url(database), time: .caller)
        defer { for opened in [direct, store] { try? opened.close() } }
        let run = try await Self.leased(direct)
        let lease = try await store.lease(run)
        #expect(lease.deliveries.count == 2)
        let call = try await direct.pool.read { db in
            try db.first("SELECT call_id FROM lease") { try $0.int64(0) }
        }
        // As it is when the server could not say what became of its COMMIT.
        store.unheard.withLock { _ = $0.insert(UnheardLease(id: call ?? 0, run: run)) }
        try await store.release(run, by: "a", state: .running, reason: nil, halt: nil, now: noon)
        #expect(try await direct.abandonedLeases(run).isEmpty)
        let counts = try #require(try await direct.run(run)).counts
        #expect(counts.leased == 0 && counts.pending == 2)
        try await direct.expectSumsClose(run)
    }
}
