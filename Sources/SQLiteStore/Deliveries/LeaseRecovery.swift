import GRDB
import Model
import Store

/// Ends the open leases of a run without the outcomes they waited for.
struct LeaseRecovery {
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
        try update.bind(RecoveryCounts.reason, update.parameter(":reason"))
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
            WHERE run_id = :run AND device_id = :device AND state = \(DeliveryState.pending.rawValue)
                AND attempt = :attempt - 1
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        try rows.bind(entry.device, rows.parameter(":device"))
        try rows.bind(Int64(entry.attempt), rows.parameter(":attempt"))
        return try rows.step() ? rows.int(0) : nil
    }
}

/// One delivery of a lease, as it is packed into the lease's row: 16 bytes, little endian.
struct LeaseEntry: Hashable {
    static let byteCount = 16

    var device: Int64
    var attempt: Int
    var generation: Int

    static func pack(_ entries: [LeaseEntry]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(entries.count * byteCount)
        for entry in entries {
            withUnsafeBytes(of: entry.device.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt32(clamping: entry.attempt).littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt32(clamping: entry.generation).littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// A rest shorter than an entry is left out.
    static func unpack(_ bytes: [UInt8]) -> [LeaseEntry] {
        bytes.withUnsafeBytes { bytes in
            (0..<bytes.count / byteCount).map { index in
                let start = index * byteCount
                let device = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int64.self))
                let attempt = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self))
                let generation = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))
                return LeaseEntry(device: device, attempt: Int(attempt), generation: Int(generation))
            }
        }
    }
}
