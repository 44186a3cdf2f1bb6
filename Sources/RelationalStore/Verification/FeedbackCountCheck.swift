import Model
import Store

/// Compares the counts of each run's reports with the reports themselves.
///
/// The counts stay when reports are deleted: by their age, or with their device. So a run may count more reports than
/// are kept, but only as many as its lost devices may have sent. It never counts fewer.
struct FeedbackCountCheck<Session: SQLSession> {
    /// The reports of one kind about the pushes of a run.
    private struct Sums {
        var run: Int64
        var kind: FeedbackKind
        var counted: Int
        var kept: Int
    }

    private let db: Session

    static var name: String { "feedback_counts" }
    static var promise: String { "the counts of each run's reports match the reports, as far as these are kept" }

    init(_ db: Session) { self.db = db }

    func faults() throws -> Verification.Check {
        let sums = try sums()
        let faults = try sums.compactMap { found -> StoreFault? in
            guard found.counted != found.kept, try !isExplained(found) else { return nil }
            return StoreFault(
                run: found.run,
                "\(found.counted.counted("report")) \(found.kind.name) \(found.counted == 1 ? "is" : "are") counted, and "
                    + "\(found.kept) \(found.kept == 1 ? "is" : "are") kept")
        }
        return Verification.Check(Self.name, Self.promise, faults: faults, compared: sums.count)
    }

    private func sums() throws -> [Sums] {
        try db.all(
            """
            SELECT run_id, kind, CAST(sum(counted) AS bigint), CAST(sum(kept) AS bigint) FROM (
                SELECT run_id, kind, sum(events) AS counted, 0 AS kept FROM feedback_count GROUP BY run_id, kind
                UNION ALL
                SELECT run_id, kind, 0 AS counted, count(*) AS kept FROM feedback_event
                WHERE run_id <> 0 GROUP BY run_id, kind
            ) AS compared GROUP BY run_id, kind ORDER BY run_id, kind
            """, values: []
        ) { row -> Sums? in
            guard let kind = FeedbackKind(rawValue: try row.int64(1)) else { return nil }
            return Sums(run: try row.int64(0), kind: kind, counted: try row.int(2), kept: try row.int(3))
        }.compactMap(\.self)
    }

    /// Whether reports were deleted that may make up the difference.
    private func isExplained(_ sums: Sums) throws -> Bool {
        guard sums.counted > sums.kept else { return false }
        let found = try db.first(
            "SELECT coalesce(started_at, created_at), outcomes_pruned_at FROM run WHERE id = $1", sums.run
        ) { (start: try $0.timestamp(0), prunedAt: try $0.timestampOrNil(1)) }
        // The devices of a run whose deliveries were pruned are not known.
        guard let found, found.prunedAt == nil else { return true }
        let removal = try db.first("SELECT received_until FROM feedback_removal") { try $0.timestamp(0) }
        if let removal, removal >= found.start { return true }
        let lost = try db.keepingNoLocks { try lostDevices(of: sums.run, since: found.start) }
        return sums.kind.isOncePerPush ? sums.counted - sums.kept <= lost : lost > 0
    }

    /// Returns the number of devices whose reports may be gone: those that were removed, deleted or merged.
    private func lostDevices(of run: Int64, since start: Timestamp) throws -> Int {
        let dialect = Session.dialect
        let gone = try db.all(
            .once(
                """
                SELECT count(*) FROM \(dialect.deliveries(of: run, as: "sent"))
                WHERE \(dialect.isOf(run: run, "sent")) AND NOT EXISTS (
                    SELECT 1 FROM device WHERE device.id = sent.device_id AND \(dialect.isNotRemoved))
                """), values: []
        ) { try $0.int(0) }
        // A removed device that registered again looks like any other.
        let removed = try db.all(
            "SELECT count(*) FROM event WHERE kind = $1 AND at >= $2",
            values: [EventKind.deviceRemoved.rawValue, start]
        ) { try $0.int(0) }
        return gone.reduce(0, +) + removed.reduce(0, +)
    }
}

extension FeedbackKind {
    /// Whether a device sends one such report about a push at most.
    fileprivate var isOncePerPush: Bool { isAboutPush && !isNamed }
}
