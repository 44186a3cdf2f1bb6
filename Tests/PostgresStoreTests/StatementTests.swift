import Foundation
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// Statements by name, together, and in transactions.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct StatementTests {
    @Test func `a statement is prepared once for each kind of values, and no more are kept than may be`() {
        var prepared = PreparedStatements(limit: 2)
        let (a, b, c) = (
            PreparedStatements.Key(text: "a", types: [20]), PreparedStatements.Key(text: "a", types: [25]),
            PreparedStatements.Key(text: "c", types: [])
        )
        #expect(prepared.find(a) == .missing(name: a.name, evicted: nil))
        prepared.add(a, name: a.name)
        #expect(prepared.find(b) == .missing(name: b.name, evicted: nil))
        prepared.add(b, name: b.name)
        #expect(prepared.find(a) == .prepared(name: a.name))
        #expect(prepared.find(c) == .missing(name: c.name, evicted: b.name))
        prepared.add(c, name: c.name)
        #expect(prepared.find(b) == .missing(name: b.name, evicted: a.name) && prepared.count == 1)
        // What another client of a pooler has prepared under a name is the same statement.
        #expect(Set([a, b, c].map(\.name)).count == 3 && a.name == PreparedStatements.Key(text: "a", types: [20]).name)
    }

    @Test func `more statements than are kept are carried out all the same`() async throws {
        try await withPool { pool in
            let sum = try await pool.write { db in
                var sum: Int64 = 0
                for number in 0..<Int64(PostgresLimits.preparedStatementsMax + 44) {
                    sum += try db.first("SELECT \(number) + $1", number) { try $0.int64(0) } ?? 0
                }
                let kept = try db.first("SELECT count(*) FROM pg_prepared_statements") { try $0.int(0) }
                #expect(kept == PostgresLimits.preparedStatementsMax)
                return sum
            }
            let asked = Int64(PostgresLimits.preparedStatementsMax + 44)
            #expect(sum == asked * (asked - 1))
        }
    }

    @Test func `a statement put together for once is not kept, and neither is any with prepare=off`() async throws {
        try await withPool { pool in
            let kept = try await pool.read { db in
                _ = try db.rows(.once("SELECT 1 + $1"), 2)
                return try db.first("SELECT count(*) FROM pg_prepared_statements") { try $0.int(0) }
            }
            #expect(kept == 1)
        }
        let cluster = try await PostgresCluster.shared
        try await withPool(cluster.url("postgres") + "&prepare=off") { pool in
            let kept = try await pool.read { db in
                _ = try db.pipeline { batch in for number in 0..<9 { batch.add("SELECT $1 + 1", number) } }
                return try db.first("SELECT count(*) FROM pg_prepared_statements") { try $0.int(0) }
            }
            #expect(kept == 0)
        }
    }

    /// What a pooler in transaction mode does to a connection that believes in its prepared statements.
    @Test func `prepared statements that are gone are done without from then on`() async throws {
        try await withPool { pool in
            try await pool.write { db in try db.run("CREATE TABLE thing (id bigint)") }
            for _ in 0..<3 {
                try await pool.write { db in
                    try db.execute("INSERT INTO thing VALUES ($1)", 1)
                    try db.run("DEALLOCATE ALL")
                }
            }
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 3)
        }
    }

    @Test func `statements of a batch are answered in their order, with one round trip`() async throws {
        try await withPool { pool in
            try await pool.write { db in
                try db.run("CREATE TABLE thing (id bigint PRIMARY KEY, name text)")
                let answers = try db.pipeline { batch in
                    for id in 0..<500 { batch.add("INSERT INTO thing VALUES ($1, $2)", id, "n\(id)") }
                    batch.add("SELECT count(*) FROM thing")
                    batch.add("UPDATE thing SET name = $1 WHERE id < $2", "x", 10)
                }
                #expect(answers.count == 502 && answers[0].affected == 1 && answers[501].affected == 10)
                #expect(try answers[500].first?.int64(0) == 500)
            }
        }
    }

    @Test func `more than a socket holds goes both ways in one batch`() async throws {
        let large = [UInt8](repeating: 7, count: 1_000_000)
        try await withPool { pool in
            let answers = try await pool.read { db in
                try db.pipeline { batch in for _ in 0..<30 { batch.add("SELECT $1", large) } }
                    .map { try $0.first?.bytes(0).count }
            }
            #expect(answers == Array(repeating: large.count, count: 30))
        }
    }

    @Test func `an error in the middle of a batch leaves nothing of it, and the connection as it was`() async throws {
        try await withPool { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint PRIMARY KEY)") }
            let error = await postgresError {
                try await pool.write { db in
                    _ = try db.pipeline { batch in
                        batch.add("INSERT INTO thing VALUES ($1)", 1)
                        batch.add("INSERT INTO thing VALUES ($1)", 1)
                        batch.add("INSERT INTO thing VALUES ($1 + 0)", 2)
                    }
                }
            }
            #expect(error?.kind == .uniqueViolation)
            let count = try await pool.write { db in
                // One that was to be prepared behind the error, and was not.
                try db.execute("INSERT INTO thing VALUES ($1 + 0)", 2)
                return try db.first("SELECT count(*) FROM thing") { try $0.int(0) }
            }
            #expect(count == 1)
        }
    }

    @Test func `a closure that throws leaves nothing, and neither does one that hides an error`() async throws {
        struct Enough: Error {}
        try await withPool { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint PRIMARY KEY)") }
            await #expect(throws: Enough.self) {
                try await pool.write { db in
                    try db.execute("INSERT INTO thing VALUES (1)")
                    throw Enough()
                }
            }
            let error = await postgresError {
                try await pool.write { db in
                    try db.execute("INSERT INTO thing VALUES (1)")
                    try? db.run("SELECT nonsense")
                }
            }
            guard case .refused(let fault, _) = error else { return #expect(error != nil) }
            #expect(fault.sqlstate == "25P02")
            #expect(try await pool.read { try $0.first("SELECT count(*) FROM thing") { try $0.int(0) } } == 0)
        }
    }

    @Test(arguments: [(PostgresTransaction.durable, "on"), (.quick, "off")])
    func `what need not survive a power failure does not wait for the disk`(
        options: PostgresTransaction, expected: String
    ) async throws {
        try await withPool { pool in
            let setting = try await pool.write(options) { db in
                try db.first("SELECT current_setting('synchronous_commit')") { try $0.text(0) }
            }
            #expect(setting == expected)
            let after = try await pool.session { db in
                try db.first("SELECT current_setting('synchronous_commit')") { try $0.text(0) }
            }
            #expect(after == "on")
        }
    }

    @Test func `a transaction that lost a race is run again`() async throws {
        try await withPool(writers: 2) { pool in
            try await pool.write { db in
                try db.run(
                    "CREATE TABLE thing (id bigint PRIMARY KEY, n bigint); INSERT INTO thing VALUES (1, 0), (2, 0)")
            }
            // Each takes one row and then the other's, the first time at the same moment: one of them must give way.
            let meeting = Meeting()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (first, second) in [(1, 2), (2, 1)] {
                    group.addTask {
                        try await pool.write { db in
                            try db.run("SET LOCAL deadlock_timeout = 10")
                            try db.execute("UPDATE thing SET n = n + 1 WHERE id = $1", first)
                            meeting.wait()
                            try db.execute("UPDATE thing SET n = n + 1 WHERE id = $1", second)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let sums = try await pool.read { db in try db.all("SELECT n FROM thing") { try $0.int64(0) } }
            #expect(sums == [2, 2] && meeting.arrivals > 2)
        }
    }
}

/// Two threads wait for each other, once; who comes later goes through.
final class Meeting: Sendable {
    private let count = Atomic(0)
    private let gate = DispatchSemaphore(value: 0)

    var arrivals: Int { count.load(ordering: .relaxed) }

    func wait() {
        switch count.add(1, ordering: .relaxed).newValue {
        case 1: gate.wait()
        case 2: gate.signal()
        default: break
        }
    }
}
