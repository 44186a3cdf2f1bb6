import Foundation
import TestSupport

/// A server without room for the senders: other clients use all of it, or its disk is full.
extension Fleet {
    /// Takes all locks. The locks taken before the first refusal stay held for 6 s.
    private static let everyLock = """
        DO $$ BEGIN
            FOR number IN 1..1000000 LOOP PERFORM pg_advisory_lock(number); END LOOP;
        EXCEPTION WHEN OTHERS THEN PERFORM pg_sleep(6);
        END $$
        """

    /// Fills the disk until each sender has met this and reported it, and a little longer. Then makes room again.
    func fillDisk() throws {
        try gather()
        try cluster.disk?.fill()
        let deadline = ContinuousClock.now + Process.longest
        while try !isWaitSaid(), ContinuousClock.now < deadline {
            if cluster.options.small == .wal { useUpLog() }
            wait(.milliseconds(500))
        }
        if try !isWaitSaid() { refused("a full disk", "nobody says so: \(said)") }
        wait(.seconds(2))
        cluster.disk?.makeRoom()
        // The server exits if it cannot write its log, or may be about to. An operator makes room and starts it again.
        try Patience.wait(for: "a server that has room") {
            if !cluster.isRunning { try? cluster.start() }
            return (try? cluster.sql("SELECT 1")) == "1"
        }
    }

    /// Uses up the log files that the server has created in advance and reuses.
    private func useUpLog() {
        _ = try? cluster.sql("SELECT pg_logical_emit_message(false, 'full', 'disk'); SELECT pg_switch_wal()")
    }

    /// Returns whether the senders' logs report that the store accepts no writes. With full tables, one sender is
    /// enough: the others may still find room in existing pages.
    private func isWaitSaid() throws -> Bool {
        said = senders.compactMap { $0.map { "\($0.errors.suffix(800))" } }.joined(separator: "\n")
        let waiting = senders.count { $0?.errors.contains("the store accepts no writes") == true }
        return waiting == senders.count || waiting > 0 && cluster.options.small == .tables
    }

    /// Uses up all connections. Returns when there is room again.
    func useUpConnections() {
        // A session that finds no room ends immediately.
        let others = begin(Self.connections, "SELECT pg_sleep(6)")
        wait(.seconds(1))
        if case .server(_, let database) = installation.store {
            _ = try? cluster.sql(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = '\(database)' AND pid <> pg_backend_pid()
                """)
        }
        awaitEnd(of: others, Self.connections)
    }

    /// Uses up all locks. Returns when there is room again.
    func useUpLocks() { awaitEnd(of: begin(1, Self.everyLock), 1) }

    /// Starts sessions that all run `sql`. Each signals its end.
    private func begin(_ sessions: Int, _ sql: String) -> DispatchSemaphore {
        let (cluster, ended) = (cluster, DispatchSemaphore(value: 0))
        for _ in 0..<sessions {
            Thread {
                _ = try? cluster.sql(sql)
                ended.signal()
            }.start()
        }
        return ended
    }

    /// Waits for the end of the sessions, even if their clients start slowly. Before that, the test itself finds no
    /// room in the store.
    private func awaitEnd(of ended: DispatchSemaphore, _ sessions: Int) {
        for _ in 0..<sessions {
            if ended.wait(timeout: .now() + ChildProcess.longest) == .timedOut { return }
        }
    }
}
