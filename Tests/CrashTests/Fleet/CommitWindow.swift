import Dispatch
import Foundation
import TestSupport

/// The time between a COMMIT and the disk, on a server of a test's own.
///
/// Under ``settings`` every COMMIT that waits for the disk waits for 100 ms before its log is written. Backends that are
/// stopped in it write nothing. Their SIGKILL makes the server recover from its log: it keeps its first process, forgets the
/// transactions although their clients have sent the COMMIT, and gives their numbers to other ones.
struct CommitWindow {
    static let settings = ["commit_delay": "100000", "commit_siblings": "0", "track_commit_timestamp": "on"]

    /// Transactions between their COMMIT and the disk.
    private struct Moment: Decodable {
        var transactions: [String]
        /// Seconds of the server's clock.
        var at: Double
    }

    private static let looksMax = 100
    /// Seconds. A backend that was stopped with one of the server's own locks blocks the look.
    private static let stoppedMax = 3

    private let cluster: PostgresCluster
    private let database: String
    private var moments: [Moment] = []
    private var looks = 0

    /// How often the backends were stopped, and how often some were caught.
    var summary: String { "\(looks) looks, \(moments.count) catches" }

    init(_ cluster: PostgresCluster, database: String) {
        self.cluster = cluster
        self.database = database
    }

    /// Kills the backends while some stand between their COMMIT and the disk, until a commit was forgotten. Returns when the
    /// server answers again.
    ///
    /// A backend that is caught after its log was written, before it says so, loses nothing: the next one is caught then.
    mutating func strike() throws {
        let before = try forgotten()
        for _ in 0..<Self.looksMax {
            looks += 1
            let backends = try cluster.sql("SELECT pid FROM pg_stat_activity WHERE datname = '\(database)'")
                .split(separator: "\n").compactMap { pid_t($0) }
            guard let moment = try whileStopped(backends, underWay) else {
                usleep(30_000)
                continue
            }
            moments.append(moment)
            try awaitRecovery()
            if try forgotten() > before { return }
        }
    }

    /// Until the server has seen the death of its backends it lets clients in, and then ends them.
    private func awaitRecovery() throws {
        let deadline = ContinuousClock.now + .seconds(60)
        repeat { usleep(100_000) } while (try? cluster.sql("SELECT 1")) != "1" && ContinuousClock.now < deadline
    }

    /// Stops the backends for a look. What it finds is the end of them; without it they go on.
    private func whileStopped(_ backends: [pid_t], _ look: () throws -> Moment?) rethrows -> Moment? {
        for backend in backends { kill(backend, SIGSTOP) }
        var moment: Moment?
        defer { for backend in backends { kill(backend, moment == nil ? SIGCONT : SIGKILL) } }
        let looked = DispatchSemaphore(value: 0)
        // Only during this look: a later one needs its backends to stand still, too.
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

    /// What a backend writes, or waits for the disk with, survives its death.
    private func underWay() throws -> Moment? {
        let found = try cluster.sql(
            """
            SELECT json_build_object(
                'transactions', json_agg(backend_xid::text), 'at', extract(epoch FROM clock_timestamp()))
            FROM pg_stat_activity
            WHERE datname = '\(database)' AND state = 'active' AND query = 'COMMIT'
                AND wait_event IS NULL AND pg_xact_status(backend_xid::text::xid8) = 'in progress'
            HAVING count(*) > 0 AND NOT EXISTS (
                SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'IO' AND wait_event IN ('WALWrite', 'WALSync'))
            """)
        return found.isEmpty ? nil : try JSONDecoder().decode(Moment.self, from: Data(found.utf8))
    }

    /// How many of these COMMITs never reached the disk: the number is of no transaction now, of one that was rolled back,
    /// or of one that was committed after the server came back.
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
