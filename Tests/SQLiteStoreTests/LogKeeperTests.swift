import Foundation
import GRDB
import Testing

@testable import SQLiteStore
import Store

/// The write-ahead log under readers that overlap, so that there is never a moment without one.
@Suite(.timeLimit(.minutes(10)))
struct LogKeeperTests {
    /// It waits for readers until they leave, however long a busy machine keeps them from it.
    private static let limits = LogLimits(checkpointPages: 200, restartPages: 500, restartWaitMs: 60_000)

    /// The largest log seen while 12 MB were written, in pages.
    private func largestLog(_ configure: (inout Configuration) -> Void) async throws -> Int {
        try await withFolder { folder in
            let path = folder.appending(path: "log.sqlite").path
            var configuration = Configuration()
            configure(&configuration)
            let pool = try DatabasePool(path: path, configuration: configuration)
            try await pool.write { try $0.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB)") }
            let isOver = Flag()
            let largest = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        while !isOver.isUp {
                            try await pool.read { db in
                                for _ in 0..<20 {
                                    _ = try Int.fetchOne(db, sql: "SELECT count(*), sum(length(value)) FROM t")
                                }
                            }
                        }
                        return 0
                    }
                }
                var largest = 0
                for number in 0..<300 {
                    try await pool.write { db in
                        try db.execute(
                            sql: "INSERT OR REPLACE INTO t (id, value) VALUES (:id, zeroblob(40000))",
                            arguments: ["id": number % 20])
                    }
                    let bytes = try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
                    largest = max(largest, (bytes ?? 0) / 4096)
                }
                isOver.raise()
                try await group.waitForAll()
                return largest
            }
            try pool.close()
            return largest
        }
    }

    @Test func `it stays small`() async throws {
        let kept = try await largestLog { configuration in
            let keeper = LogKeeper(Self.limits)
            configuration.prepareDatabase { if !$0.configuration.readonly { keeper.attach(to: $0) } }
        }
        // A transaction's worth above, and one round more for a reader that was slow to leave.
        #expect(kept < 1_200)
        #expect(kept >= 200)
    }

    @Test func `a reader that stays is not waited for at every commit`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "log.sqlite").path
            var configuration = Configuration()
            let keeper = LogKeeper(LogLimits(checkpointPages: 20, restartPages: 50, restartWaitMs: 100))
            configuration.prepareDatabase { if !$0.configuration.readonly { keeper.attach(to: $0) } }
            let pool = try DatabasePool(path: path, configuration: configuration)
            try await pool.write { try $0.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB)") }
            let snapshot = try pool.makeSnapshot()
            _ = try await snapshot.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
            for _ in 0..<200 {
                try await pool.write { try $0.execute(sql: "INSERT INTO t (value) VALUES (zeroblob(4000))") }
            }
            // The log of some 600 pages is worth about a dozen, of 200 commits.
            #expect((5...20).contains(keeper.restarts))
            #expect(try await snapshot.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 0)
            try snapshot.close()
            try pool.close()
        }
    }
}
