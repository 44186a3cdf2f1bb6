import GRDB
import Store
import Model

/// Ends the open leases of a run without the outcomes they waited for.
struct LeaseRecovery {
    /// Stands where APNs' reason would, until a later attempt brings one.
    static let reason = "Interrupted"

    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, _ run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Deliveries without an outcome are pending again where the campaign may send them once more, otherwise unknown;
    /// without a campaign all are unknown.
    func closeAll(resending campaign: Campaign? = nil) throws -> RecoveryCounts {
        var counts = RecoveryCounts()
        var change = DeliveryCounts()
        for packed in try leases() {
            counts.leases += 1
            for entry in LeaseEntry.unpack(packed) {
                guard let isResent = try close(entry, campaign) else { continue }
                change.leased -= 1
                change.pending += isResent ? 1 : 0
                change.unknown += isResent ? 0 : 1
            }
        }
        counts.resent = change.pending
        counts.unknown = change.unknown
        try db.execute(sql: "DELETE FROM lease WHERE run_id = :run", arguments: ["run": run])
        try RunRow.add(change, to: run, db)
        return counts
    }

    private func leases() throws -> [[UInt8]] {
        let rows = try RowStatement(db, "SELECT entries FROM lease WHERE run_id = :run ORDER BY id")
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        var leases: [[UInt8]] = []
        while try rows.step() { leases.append(rows.bytes(0)) }
        return leases
    }

    /// Whether it goes out again; nil when the attempt has its outcome.
    private func close(_ entry: LeaseEntry, _ campaign: Campaign?) throws -> Bool? {
        guard let doubts = try doubts(entry) else { return nil }
        let isResent = campaign?.mayResendUnknown(afterAttempt: entry.attempt, doubts: doubts) ?? false
        let state = isResent ? DeliveryState.pending : .unknown
        let update = try RowStatement(
            db,
            """
            UPDATE delivery SET
                state = :state, attempt = :attempt, doubts = doubts + 1, generation = :generation, not_before = NULL, status = 0,
                reason = :reason, changed_at = :now
            WHERE run_id = :run AND device_id = :device
            """)
        try update.bind(Int64(state.rawValue), update.parameter(":state"))
        try update.bind(Int64(entry.attempt), update.parameter(":attempt"))
        try update.bind(Int64(entry.generation), update.parameter(":generation"))
        try update.bind(Self.reason, update.parameter(":reason"))
        try update.bind(now.milliseconds, update.parameter(":now"))
        try update.bind(run, update.parameter(":run"))
        try update.bind(entry.device, update.parameter(":device"))
        try update.run()
        try SilentLedger(db).close(device: entry.device, run: run, attempt: entry.attempt, at: now)
        return isResent
    }

    /// Of a delivery that still waits for the outcome of this attempt.
    private func doubts(_ entry: LeaseEntry) throws -> Int? {
        let rows = try RowStatement(
            db,
            """
            SELECT doubts FROM delivery
            WHERE run_id = :run AND device_id = :device AND state = 0 AND attempt = :attempt - 1
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(entry.device, rows.parameter(":device"))
        try rows.bind(Int64(entry.attempt), rows.parameter(":attempt"))
        return try rows.step() ? rows.int(0) : nil
    }
}
