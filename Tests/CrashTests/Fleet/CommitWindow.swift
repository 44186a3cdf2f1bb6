import Dispatch
import Foundation
import TestSupport

/// The time between a COMMIT and its write to disk, on a server that belongs to one test.
///
/// Under ``settings``, each COMMIT waits for 100 ms before its log record is written. Backends that are stopped in this
/// time write nothing. Their SIGKILL makes the server recover from its log, without restarting its first process. The
/// server then forgets the transactions although the clients have sent the COMMIT, and reuses their numbers.
struct CommitWindow {
    static let settings = ["commit_delay": "100000", "commit_siblings": "0", "track_commit_timestamp": "on"]

    /// The transactions that were between their COMMIT and the disk.
    private struct Moment: Decodable {
        var transactions: [String]
        /// The time in seconds, by the server's clock.
        var at: Double
    }

    private static let looksMax = 100
    /// The time in seconds after which stopped backends continue. A backend that was stopped with an internal lock of
    /// the server blocks the query.
    private static let stoppedMax = 3

    private let cluster: PostgresCluster
    private let database: String
    private var moments: [Moment] = []
    private var looks = 0

    /// The number of times that the backends were stopped, and that some were caught.
    var summary: String { "\(looks) looks, \(moments.count) catches" }

    init(_ cluster: PostgresCluster, database: String) {
        self.cluster = cluster
        self.database = database
    }

    /// Kills the backends while some are between their COMMIT and the disk, until the server has forgotten a commit.
    /// Returns when the server responds again.
    ///
    /// A backend that has written its log but not yet reported it loses nothing. The method then tries again.
    mutating func strike() throws {
        let before = try forgotten()
        for _ in 0..<Self.looksMax {
            looks += 1
            let backends = try cluster.sql("SELECT pid FROM pg_stat_activity WHERE datname = '\(database)'")
                .split(separator: "\n").compactMap { pid_t($0) }
            let began = ContinuousClock.now
            guard let moment = try whileStopped(backends, underWay) else {
                // On a busy machine a look takes long. The backends need most of the time for the run.
                usleep(30_000 + UInt32((ContinuousClock.now - began) * 3 / .microseconds(1)))
                continue
            }
            moments.append(moment)
            try awaitRecovery()
            if try forgotten() > before { return }
        }
    }

    /// Waits until the server responds again. Until the server notices that its backends have died, it accepts clients,
    /// and then disconnects them.
    private func awaitRecovery() throws {
        let deadline = ContinuousClock.now + .seconds(60)
        repeat { usleep(100_000) } while (try? cluster.sql("SELECT 1")) != "1" && ContinuousClock.now < deadline
    }

    /// Stops the backends during a query. Kills them if the query finds a moment, and continues them otherwise.
    private func whileStopped(_ backends: [pid_t], _ look: () throws -> Moment?) rethrows -> Moment? {
        for backend in backends { kill(backend, SIGSTOP) }
        var moment: Moment?
        defer { for backend in backends { kill(backend, moment == nil ? SIGCONT : SIGKILL) } }
        let looked = DispatchSemaphore(value: 0)
        // The thread may continue the backends only during this query. A later query must find them stopped.
        defer { looked.signal() }
        Thread {
            guard looked.wait(timeout: .now() + .seconds(Self.stoppedMax)) == .timedOut else { return }
            for backend in backends { kill(backend, SIGCONT) }
        }.start()
        let began = ContinuousClock.now
        let found = try look()
        if ContinuousClock.now - began < .seconds(Self.stoppedMax) { moment = found }
        return moment
    }

    /// Returns the transactions that wait before the disk, or `nil`. A log record that a backend writes or syncs now
    /// would survive the kill.
    private func underWay() throws -> Moment? {
        let found = try cluster.sql(
            """
            SELECT json_build_object(
                'transactions', json_agg(backend_xid::text), 'at', extract(epoch FROM clock_timestamp()))
            FROM pg_stat_activity
            WHERE datname = '\(database)' AND state = 'active' AND query LIKE '%COMMIT'
                AND wait_event IS NULL AND pg_xact_status(backend_xid::text::xid8) = 'in progress'
            HAVING count(*) > 0 AND NOT EXISTS (
                SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'IO' AND wait_event IN ('WALWrite', 'WALSync'))
            """)
        return found.isEmpty ? nil : try JSONDecoder().decode(Moment.self, from: Data(found.utf8))
    }

    /// Returns the number of these COMMITs that never reached the disk. Their number then belongs to no transaction, to
    /// one that was rolled back, or to one that was committed after the recovery.
    func forgotten() throws -> Int {
        let rows = moments.flatMap { moment in moment.transactions.map { "('\($0)', \(moment.at))" } }
        guard !rows.isEmpty else { return 0 }
        let count = try cluster.sql(
            """
            SELECT count(*) FROM (VALUES \(rows.joined(separator: ", "))) AS caught (number, at)
            WHERE CASE
                WHEN number::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) THEN true
                WHEN pg_xact_status(number::xid8) = 'committed'
                    THEN coalesce(extract(epoch FROM pg_xact_commit_timestamp(number::xid)) > at, false)
                ELSE true
            END
            """)
        return Int(count) ?? 0
    }
}
