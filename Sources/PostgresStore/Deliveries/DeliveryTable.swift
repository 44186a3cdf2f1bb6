import Model
import Store
import RelationalStore

/// The partition that holds the deliveries of one run. It is created with the run and dropped with the run's
/// outcomes.
///
/// Statements name the partition instead of the parent table, so that no plan has to include the partitions of other
/// runs.
struct DeliveryTable {
    /// The number of relations of a run: its table and four indexes.
    static let relations = 5

    let run: Int64

    var name: String { "delivery_\(run)" }

    /// Creates the table, and then attaches it as a partition. `CREATE TABLE ... PARTITION OF` would keep readers of
    /// any run waiting.
    func make(_ db: PostgresSession) throws {
        try db.run(
            """
            CREATE TABLE \(name) (LIKE delivery INCLUDING CONSTRAINTS, PRIMARY KEY (device_id))
                WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
            ALTER TABLE delivery ATTACH PARTITION \(name) FOR VALUES IN (\(run))
            """)
    }

    /// Creates the index that finds failed deliveries by their reason. Call it after the run, so that no settlement
    /// has to update the index.
    func indexFailed(_ db: PostgresSession) throws {
        try db.run(
            "CREATE INDEX IF NOT EXISTS \(failedIndex) ON \(name) (state, reason, device_id) WHERE state NOT IN (0, 1)")
    }

    func hasFailedIndex(_ db: PostgresSession) throws -> Bool {
        try db.first("SELECT to_regclass($1) IS NOT NULL", failedIndex) { try $0.bool(0) } ?? false
    }

    private var failedIndex: String { "\(name)_failed" }

    /// Drops the table. Gives up after 200 ms if another transaction reads it: while this lock waits, all senders
    /// wait too.
    func drop(_ db: PostgresSession) throws {
        try db.run("SET LOCAL lock_timeout = '200ms'; LOCK TABLE \(name) IN ACCESS EXCLUSIVE MODE; DROP TABLE \(name)")
    }

    /// Returns whether the statement failed because a run's table does not exist.
    static func isMissing(_ error: PostgresError) -> Bool {
        guard case .refused(let fault, _) = error else { return false }
        return fault.sqlstate == "42P01" && fault.message.contains(/delivery_[0-9]/)
    }

    /// Returns false once the outcomes of the run were dropped.
    func isThere(_ db: PostgresSession) throws -> Bool {
        try db.first("SELECT to_regclass($1) IS NOT NULL", name) { try $0.bool(0) } ?? false
    }
}
