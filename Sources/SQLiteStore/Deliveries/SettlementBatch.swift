import GRDB
import Store
import Model

/// Records outcomes in the transaction of `db`: one update for the plain acceptances of a
/// lease and one for each other delivery, the rest per batch or for the few it concerns.
struct SettlementBatch {
    private let db: Database
    private let run: Int64
    private let now: Timestamp
    private let statement: SettlementStatement
    private let ledger: SilentLedger

    init(_ db: Database, run: Int64, now: Timestamp) throws {
        self.db = db
        self.run = run
        self.now = now
        statement = try SettlementStatement(db, run: run, now: now)
        ledger = SilentLedger(db)
    }

    func record(_ settlements: [Settlement]) throws -> DeliveryCounts {
        var change = DeliveryCounts()
        var devicesGone = 0
        // Settlements come by lease, so each is met once, or a few times.
        var start = settlements.startIndex
        while start < settlements.endIndex {
            let id = settlements[start].lease
            let end = settlements[start...].firstIndex { $0.lease != id } ?? settlements.endIndex
            try record(settlements[start..<end], ofLease: id, &change, &devicesGone)
            start = end
        }
        if devicesGone > 0 { try count(devicesGone: devicesGone) }
        return try RunRow.add(change, to: run, db)
    }

    private func record(
        _ settlements: ArraySlice<Settlement>, ofLease id: Int64, _ change: inout DeliveryCounts,
        _ devicesGone: inout Int
    ) throws {
        guard var lease = try OpenLease(db, id, run: run) else {
            for settlement in settlements { try extendLedger(settlement) }
            return
        }
        var range = AcceptedRange(settlements)
        if let made = range, try !made.record(run: run, now: now, db) { range = nil }
        for settlement in settlements {
            let isRecorded = range?.take(settlement) ?? false
            guard try isRecorded || statement.record(settlement) else {
                try extendLedger(settlement)
                continue
            }
            lease.settled += 1
            Self.count(settlement.verdict, &change)
            if lease.isSilent { try settleLedger(settlement) }
            if lease.hasUnproven, settlement.verdict == .accepted { try prove(settlement) }
            if case .gone(let since) = settlement.effect, try markGone(settlement, since: since) { devicesGone += 1 }
        }
        try lease.write(db)
    }

    private static func count(_ verdict: Settlement.Verdict, _ change: inout DeliveryCounts) {
        change.leased -= 1
        switch verdict {
        case .accepted: change.accepted += 1
        case .rejected: change.rejected += 1
        case .unknown: change.unknown += 1
        case .retry: change.pending += 1
        case .suppressed: change.suppressed += 1
        }
    }

    private func settleLedger(_ settlement: Settlement) throws {
        if settlement.mayHaveReachedAPNs {
            try ledger.close(device: settlement.device, run: run, attempt: settlement.attempt, at: now)
        } else {
            try ledger.giveBack(device: settlement.device, run: run, attempt: settlement.attempt)
        }
    }

    /// A late outcome: the push may have left after its lease was closed by somebody else.
    private func extendLedger(_ settlement: Settlement) throws {
        guard settlement.mayHaveReachedAPNs else { return }
        try ledger.close(device: settlement.device, run: run, attempt: settlement.attempt, at: now)
    }

    private func prove(_ settlement: Settlement) throws {
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO proven_token (device_id, token_generation) VALUES (:device, :generation)
            ON CONFLICT (device_id) DO UPDATE SET token_generation = excluded.token_generation
                WHERE token_generation < excluded.token_generation
            """)
        try insertion.bind(settlement.device, insertion.parameter(":device"))
        try insertion.bind(Int64(settlement.generation), insertion.parameter(":generation"))
        try insertion.run()
    }

    private func markGone(_ settlement: Settlement, since: Timestamp) throws -> Bool {
        try db.cachedStatement(
            sql: """
                UPDATE device SET status = 2, status_reason = :reason, status_at = :since
                WHERE id = :device AND token_generation = :generation AND status <> 2
                    AND (registered_at IS NULL OR registered_at <= :since)
                """
        ).execute(arguments: [
            "device": settlement.device, "generation": settlement.generation, "reason": settlement.reason,
            "since": since.milliseconds,
        ])
        return db.changesCount > 0
    }

    private func count(devicesGone: Int) throws {
        try db.execute(
            sql: "UPDATE run SET devices_gone = devices_gone + :count WHERE id = :run",
            arguments: ["run": run, "count": devicesGone])
    }
}
