import Foundation
import TestSupport

/// The time between a COMMIT and the disk, on a server of a test's own.
///
/// Under ``settings`` every COMMIT that waits for the disk waits for 100 ms before its log is written. A SIGKILL of any
/// backend meanwhile makes the server recover from its log. It keeps its first process, forgets the transaction although
/// its client has sent the COMMIT, and gives the transaction's number to another one.
struct CommitWindow {
    static let settings = ["commit_delay": "100000", "commit_siblings": "0", "track_commit_timestamp": "on"]

    /// Transactions between their COMMIT and the disk, and a backend that does nothing.
    private struct Moment: Decodable {
        var transactions: [String]
        var backend: pid_t
        /// Seconds of the server's clock.
        var at: Double
    }

    /// Waits for ten seconds at most.
    private static let search = """
        CREATE OR REPLACE FUNCTION commits_under_way(name text) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE found text;
        BEGIN
            FOR look IN 1..2000 LOOP
                PERFORM pg_stat_clear_snapshot();
                SELECT json_build_object(
                    'transactions', json_agg(backend_xid::text), 'at', extract(epoch FROM clock_timestamp()),
                    'backend', (
                        SELECT pid FROM pg_stat_activity
                        WHERE datname = name AND state = 'idle' OR backend_type = 'autovacuum launcher'
                        ORDER BY datname NULLS LAST LIMIT 1))
                INTO found FROM pg_stat_activity
                WHERE datname = name AND state = 'active' AND query = 'COMMIT' AND backend_xid IS NOT NULL
                HAVING count(*) > 0;
                IF found IS NOT NULL THEN RETURN found; END IF;
                PERFORM pg_sleep(0.005);
            END LOOP;
            RETURN '';
        END $$
        """

    private let cluster: PostgresCluster
    private let database: String
    private var moments: [Moment] = []

    init(_ cluster: PostgresCluster, database: String) throws {
        self.cluster = cluster
        self.database = database
        try cluster.sql(Self.search)
    }

    /// Kills a backend while others wait between their COMMIT and the disk; returns when the server answers again.
    mutating func strike() throws {
        let found = try cluster.sql("SELECT commits_under_way('\(database)')")
        guard !found.isEmpty else { return }
        let moment = try JSONDecoder().decode(Moment.self, from: Data(found.utf8))
        kill(moment.backend, SIGKILL)
        moments.append(moment)
        // Until it has seen the death of its backend it lets clients in, and then ends them.
        let deadline = ContinuousClock.now + .seconds(60)
        repeat { usleep(100_000) } while (try? cluster.sql("SELECT 1")) != "1" && ContinuousClock.now < deadline
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
                    THEN coalesce(extract(epoch FROM pg_xact_commit_timestamp(number::xid)) > at + 0.15, false)
                ELSE true
            END
            """)
        return Int(count) ?? 0
    }
}
