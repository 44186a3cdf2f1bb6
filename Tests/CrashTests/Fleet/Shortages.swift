import Foundation
import TestSupport

/// A server that has no room for senders: others have all of it, or its disk is full.
extension Fleet {
    /// Those taken before one is refused are kept meanwhile.
    private static let everyLock = """
        DO $$ BEGIN
            FOR number IN 1..1000000 LOOP PERFORM pg_advisory_lock(number); END LOOP;
        EXCEPTION WHEN OTHERS THEN PERFORM pg_sleep(6);
        END $$
        """

    /// Until every sender has met it and says so, and a little longer; then there is room again.
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
        // It ends by itself when it cannot write its log, and may be about to: an operator makes room and starts it.
        try Patience.wait(for: "a server that has room") {
            if !cluster.isRunning { try? cluster.start() }
            return (try? cluster.sql("SELECT 1")) == "1"
        }
    }

    /// A server has files of its log ahead, and reuses them.
    private func useUpLog() {
        _ = try? cluster.sql("SELECT pg_logical_emit_message(false, 'full', 'disk'); SELECT pg_switch_wal()")
    }

    /// Whether a sender's log says that the store accepts no writes: every one's where the server is down. With full
    /// tables one that finds room in pages that are there goes on.
    private func isWaitSaid() throws -> Bool {
        said = senders.compactMap { $0.map { "\($0.errors.suffix(800))" } }.joined(separator: "\n")
        let waiting = senders.count { $0?.errors.contains("the store accepts no writes") == true }
        return waiting == senders.count || waiting > 0 && cluster.options.small == .tables
    }

    /// Returns when there is room again.
    func useUpConnections() {
        // Those that find no room end at once.
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

    /// Returns when there is room again.
    func useUpLocks() { awaitEnd(of: begin(1, Self.everyLock), 1) }

    /// So many sessions that do the same; each signals its end.
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

    /// However long their clients take to start: who looks at the store before that finds no room either.
    private func awaitEnd(of ended: DispatchSemaphore, _ sessions: Int) {
        for _ in 0..<sessions {
            if ended.wait(timeout: .now() + ChildProcess.longest) == .timedOut { return }
        }
    }
}
