import Model
import Store
import RelationalStore

/// Coalesces the background pushes that wait for a device's silent budget. If several have the same collapse key,
/// only the push of the newest run continues to wait. A second push would tell the app nothing new. A device belongs
/// to one app, so its id also identifies the app.
///
/// Pushes in flight, and pushes put off for another reason, are not changed. Use it after the devices are locked;
/// see ``SilentLedger/standing(of:at:_:after:)``. From then on, no other transaction makes a push of these devices
/// wait.
final class Coalescing {
    private static let waiting = """
        device_id = ANY ($1) AND state = \(DeliveryState.pending.code) AND not_before < \(NotBefore.inFlight)
            AND reason = '\(SuppressionReason.silentBudget.rawValue)'
        """

    private let db: PostgresSession
    private let run: Int64
    private let now: Timestamp
    private let candidates: [Int64]
    /// The unfinished runs with the same collapse key. They are looked up when the first delivery has to wait.
    private var others: [Int64]?
    private var waitingNewer: Set<Int64>?

    init(_ db: PostgresSession, run: Int64, candidates: [Int64], now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
        self.candidates = candidates
    }

    /// Returns whether a push of a newer run already waits for the device.
    func newerWaits(_ device: Int64) throws -> Bool {
        if let waitingNewer { return waitingNewer.contains(device) }
        var found: Set<Int64> = []
        for newer in try runs() where newer > run {
            let table = DeliveryTable(run: newer)
            found.formUnion(
                try db.all("SELECT device_id FROM \(table.name) WHERE \(Self.waiting)", candidates) { try $0.int64(0) })
        }
        waitingNewer = found
        return found.contains(device)
    }

    /// Suppresses the waiting pushes of older runs in favour of this run's. Returns the number of suppressed pushes
    /// by run.
    func replaceOlder(_ devices: [Int64]) throws -> [Int64: Int] {
        guard !devices.isEmpty else { return [:] }
        var replaced: [Int64: Int] = [:]
        for older in try runs() where older < run {
            let table = DeliveryTable(run: older).name
            // Skip a push that its own run is examining now. The other run waits for the device's slot, then finds
            // this run's push and suppresses its own.
            let count = try db.execute(
                """
                WITH replaced AS MATERIALIZED (
                    SELECT device_id FROM \(table) WHERE \(Self.waiting) FOR NO KEY UPDATE SKIP LOCKED
                )
                UPDATE \(table) SET
                    state = \(DeliveryState.suppressed.code), status = 0,
                    reason = '\(SuppressionReason.coalesced.rawValue)', not_before = NULL, changed_at = $2
                FROM replaced WHERE \(table).device_id = replaced.device_id
                """, devices, now)
            if count > 0 { replaced[older] = count }
        }
        return replaced
    }

    private func runs() throws -> [Int64] {
        if let others { return others }
        let found = try db.all(
            """
            SELECT other.id FROM run AS mine
            JOIN run AS other ON other.coalesce_key = mine.coalesce_key
            WHERE mine.id = $1 AND other.id <> mine.id
                AND other.state IN (\(SQLConstants.list([.running, .paused] as [RunState])))
                AND other.outcomes_pruned_at IS NULL
            ORDER BY other.id
            """, run
        ) { try $0.int64(0) }
        others = found
        return found
    }
}
