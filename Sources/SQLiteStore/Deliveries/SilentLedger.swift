import Foundation
import GRDB
import RelationalStore
import Store
import Model

/// The background pushes to each device that were sent, or may have been.
struct SilentLedger {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Returns the time of the outcome of each push to the device; `nil` for a push in flight. Also deletes the rows
    /// that the budget no longer needs. This is cheap, because one device's few rows are on one page.
    func ends(
        of device: Int64, at now: Timestamp, _ budget: Model.Configuration.SilentBudget?, after steps: [ClockStep]
    ) throws -> [Timestamp?] {
        let ends = try ends(device: device)
        guard let budget else { return ends }
        let past = RollingWindow(budget, at: now, after: steps).forgottenUpTo
        if ends.contains(where: { $0.map { $0 <= past } ?? false }) { try prune(device, upTo: past) }
        return ends
    }

    /// Reserves a slot of the budget for this lease of the delivery.
    func reserve(_ delivery: LeasedDelivery, run: Int64, at now: Timestamp) throws {
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            VALUES (:device, :run, :number, :now, NULL)
            """)
        try bind(insertion, device: delivery.device, run: run, number: delivery.leaseNumber)
        try insertion.bind(now.milliseconds, insertion.parameter(":now"))
        try insertion.run()
    }

    /// Closes the slot when the outcome is known or lost. The push has certainly ended by `now`.
    func close(device: Int64, run: Int64, number: Int, at now: Timestamp) throws {
        let update = try RowStatement(
            db,
            """
            UPDATE silent_ledger SET settled_at = max(coalesce(settled_at, :now), :now)
            WHERE device_id = :device AND run_id = :run AND lease_number = :number
            """)
        try bind(update, device: device, run: run, number: number)
        try update.bind(now.milliseconds, update.parameter(":now"))
        try update.run()
    }

    /// Releases the slot of a push that certainly never reached APNs.
    func releaseSlots(device: Int64, run: Int64, number: Int) throws {
        let deletion = try RowStatement(
            db, "DELETE FROM silent_ledger WHERE device_id = :device AND run_id = :run AND lease_number = :number")
        try bind(deletion, device: device, run: run, number: number)
        try deletion.run()
    }

    /// The number of runs whose budgets are kept: the latest ones.
    private static let recordedRuns = 1_000

    /// Records the silent budget under which the run's pushes are reserved. ``LedgerScan`` also checks the pushes
    /// against it.
    func record(_ budget: Model.Configuration.SilentBudget, run: Int64) throws {
        let key = "\(RecordedBudgets.keyPrefix)\(run)"
        let known: [Model.Configuration.SilentBudget] = try StoredFact.value(key, db) ?? []
        guard !known.contains(budget) else { return }
        try StoredFact.set(key, known + [budget], db)
        guard known.isEmpty else { return }
        try db.execute(
            sql: """
                DELETE FROM meta WHERE substr(key, 1, length(:prefix)) = :prefix
                    AND CAST(substr(key, length(:prefix) + 1) AS INTEGER) NOT IN (
                        SELECT id FROM run ORDER BY id DESC LIMIT \(Self.recordedRuns)
                    )
                """, arguments: ["prefix": RecordedBudgets.keyPrefix])
    }

    func recordedBudgets() throws -> RecordedBudgets {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT CAST(substr(key, length(:prefix) + 1) AS INTEGER), value FROM meta
                WHERE substr(key, 1, length(:prefix)) = :prefix
                """, arguments: ["prefix": RecordedBudgets.keyPrefix])
        let budgets: [(Int64, [Model.Configuration.SilentBudget])] = try rows.map { row in
            (row[0], try StoredJSON.value(String(decoding: row[1] as Data, as: UTF8.self)))
        }
        return RecordedBudgets(Dictionary(budgets) { first, _ in first })
    }

    private func ends(device: Int64) throws -> [Timestamp?] {
        let rows = try RowStatement(db, "SELECT settled_at FROM silent_ledger WHERE device_id = :device")
        defer { rows.reset() }
        try rows.bind(device, rows.parameter(":device"))
        var ends: [Timestamp?] = []
        while try rows.step() { ends.append(Timestamp(stored: rows.int64OrNil(0))) }
        return ends
    }

    private func prune(_ device: Int64, upTo past: Timestamp) throws {
        let deletion = try RowStatement(
            db, "DELETE FROM silent_ledger WHERE device_id = :device AND settled_at <= :past")
        try deletion.bind(device, deletion.parameter(":device"))
        try deletion.bind(past.milliseconds, deletion.parameter(":past"))
        try deletion.run()
    }

    private func bind(_ statement: RowStatement, device: Int64, run: Int64, number: Int) throws {
        try statement.bind(device, statement.parameter(":device"))
        try statement.bind(run, statement.parameter(":run"))
        try statement.bind(Int64(number), statement.parameter(":number"))
    }
}
