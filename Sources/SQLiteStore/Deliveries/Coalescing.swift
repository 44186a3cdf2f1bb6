import GRDB
import RelationalStore
import Store
import Model

/// Coalesces the background pushes that wait for a device's silent budget. If several have the same collapse key,
/// only the push of the newest run continues to wait. A second push would tell the app nothing new. A device belongs
/// to one app, so its id also identifies the app.
///
/// Pushes in flight, and pushes put off for another reason, are not changed.
final class Coalescing {
    private static let waiting = """
        run_id = :run AND device_id = :device AND state = \(DeliveryState.pending.rawValue) AND not_before IS NOT NULL
            AND not_before < :in_flight AND reason = :budget
        """
    private static let findSQL = "SELECT 1 FROM delivery WHERE \(waiting)"
    private static let replaceSQL = """
        UPDATE delivery SET
            state = \(DeliveryState.suppressed.rawValue), status = 0, reason = :coalesced, not_before = NULL,
            changed_at = :now
        WHERE \(waiting)
        """

    private let db: Database
    private let run: Int64
    private let now: Timestamp
    /// The running and paused runs with the same collapse key. They are looked up when the first delivery has to
    /// wait.
    private var others: [Int64]?
    private var replaced: [Int64: Int] = [:]

    init(_ db: Database, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    /// Returns whether a newer run's push to the device already waits.
    func newerWaits(_ device: Int64) throws -> Bool {
        let rows = try RowStatement(db, Self.findSQL)
        defer { rows.reset() }
        for newer in try runs() where newer > run {
            rows.reset()
            try bind(rows, run: newer, device: device)
            if try rows.step() { return true }
        }
        return false
    }

    /// Suppresses the waiting pushes of older runs in favour of this run's push.
    func replaceOlder(_ device: Int64) throws {
        let update = try RowStatement(db, Self.replaceSQL)
        for older in try runs() where older < run {
            try bind(update, run: older, device: device)
            try update.bind(SuppressionReason.coalesced.rawValue, update.parameter(":coalesced"))
            try update.bind(now.milliseconds, update.parameter(":now"))
            try update.run()
            if update.changes > 0 { replaced[older, default: 0] += 1 }
        }
    }

    /// Updates the counts of the runs that lost deliveries. Call it once, at the end.
    func countReplaced() throws {
        for (older, count) in replaced {
            var change = DeliveryCounts()
            change.pending = -count
            change.suppressed = count
            try RunRow.add(change, to: older, at: now, db)
        }
        replaced = [:]
    }

    private func runs() throws -> [Int64] {
        if let others { return others }
        let found = try Int64.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT other.id FROM run AS mine
                    JOIN run AS other ON other.coalesce_key = mine.coalesce_key
                    WHERE mine.id = :run AND other.id <> mine.id AND other.state IN (\(SQLConstants.list([.running, .paused] as [RunState])))
                    """), arguments: ["run": run])
        others = found
        return found
    }

    private func bind(_ statement: RowStatement, run: Int64, device: Int64) throws {
        try statement.bind(run, statement.parameter(":run"))
        try statement.bind(device, statement.parameter(":device"))
        try statement.bind(NotBefore.inFlight, statement.parameter(":in_flight"))
        try statement.bind(SuppressionReason.silentBudget.rawValue, statement.parameter(":budget"))
    }
}
