import GRDB
import Store
import Model

/// The background pushes of each device that left, or may have.
struct SilentLedger {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Takes a slot of the budget for this attempt, or says why not.
    func reserve(
        _ delivery: LeasedDelivery, _ budget: Model.Configuration.SilentBudget, _ request: LeaseRequest,
        expiresAt: Timestamp?
    ) throws -> LeaseDecision {
        let ends = try ends(device: delivery.device)
        // Twice the window is certainly over; one device's few rows lie on one page.
        let past = (request.now - budget.window - budget.window).milliseconds
        if ends.contains(where: { $0.map { $0 <= past } ?? false }) { try prune(delivery.device, upTo: past) }
        let decision = SilentSlot.decide(
            ends: ends, budget: budget, now: request.now, expiresAt: expiresAt)
        guard decision == .send else { return decision }
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO silent_ledger (device_id, run_id, attempt, reserved_at, settled_at)
            VALUES (:device, :run, :attempt, :now, NULL)
            """)
        try bind(insertion, device: delivery.device, run: request.run, attempt: delivery.attempt)
        try insertion.bind(request.now.milliseconds, insertion.parameter(":now"))
        try insertion.run()
        return .send
    }

    /// The outcome is known, or was lost: from `now` on the push is certainly in the past.
    func close(device: Int64, run: Int64, attempt: Int, at now: Timestamp) throws {
        let update = try RowStatement(
            db,
            """
            UPDATE silent_ledger SET settled_at = max(coalesce(settled_at, :now), :now)
            WHERE device_id = :device AND run_id = :run AND attempt = :attempt
            """)
        try bind(update, device: device, run: run, attempt: attempt)
        try update.bind(now.milliseconds, update.parameter(":now"))
        try update.run()
    }

    /// The push certainly never reached APNs.
    func giveBack(device: Int64, run: Int64, attempt: Int) throws {
        let deletion = try RowStatement(
            db, "DELETE FROM silent_ledger WHERE device_id = :device AND run_id = :run AND attempt = :attempt")
        try bind(deletion, device: device, run: run, attempt: attempt)
        try deletion.run()
    }

    private func ends(device: Int64) throws -> [Int64?] {
        let rows = try RowStatement(db, "SELECT settled_at FROM silent_ledger WHERE device_id = :device")
        defer { rows.reset() }
        try rows.bind(device, rows.parameter(":device"))
        var ends: [Int64?] = []
        while try rows.step() { ends.append(rows.int64OrNil(0)) }
        return ends
    }

    private func prune(_ device: Int64, upTo past: Int64) throws {
        let deletion = try RowStatement(
            db, "DELETE FROM silent_ledger WHERE device_id = :device AND settled_at <= :past")
        try deletion.bind(device, deletion.parameter(":device"))
        try deletion.bind(past, deletion.parameter(":past"))
        try deletion.run()
    }

    private func bind(_ statement: RowStatement, device: Int64, run: Int64, attempt: Int) throws {
        try statement.bind(device, statement.parameter(":device"))
        try statement.bind(run, statement.parameter(":run"))
        try statement.bind(Int64(attempt), statement.parameter(":attempt"))
    }
}
