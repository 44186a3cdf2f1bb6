import GRDB
import Store
import Model

/// Inserts a batch of deliveries and counts them, in the transaction of `db`.
struct FreezeBatch {
    private let db: Database
    private let run: Int64
    private let now: Timestamp

    init(_ db: Database, run: Int64, now: Timestamp) {
        self.db = db
        self.run = run
        self.now = now
    }

    func insert(_ entries: [FreezeSource.Entry], isLast: Bool) throws -> DeliveryCounts {
        let insertion = try RowStatement(
            db,
            """
            INSERT INTO delivery (
                run_id, device_id, environment, state, attempt, doubts, generation, variant, wave, not_before, locale_index,
                status, reason, changed_at
            ) VALUES (
                :run, :device, :environment, :state, 0, 0, :generation, :variant, :wave, :not_before, NULL, 0, :reason,
                :now
            )
            """)
        let device = insertion.parameter(":device")
        let environment = insertion.parameter(":environment")
        let state = insertion.parameter(":state")
        let generation = insertion.parameter(":generation")
        let variant = insertion.parameter(":variant")
        let wave = insertion.parameter(":wave")
        let notBefore = insertion.parameter(":not_before")
        let reason = insertion.parameter(":reason")
        try insertion.bind(run, insertion.parameter(":run"))
        try insertion.bind(now.milliseconds, insertion.parameter(":now"))
        var change = DeliveryCounts()
        change.audience = entries.count
        for entry in entries {
            let isSuppressed = entry.suppression != nil
            try insertion.bind(entry.device, device)
            try insertion.bind(entry.environment, environment)
            try insertion.bind(Int64((isSuppressed ? DeliveryState.suppressed : .pending).rawValue), state)
            try insertion.bind(entry.generation, generation)
            try insertion.bind(entry.variant.map(Int64.init), variant)
            try insertion.bind(entry.wave?.milliseconds, wave)
            try insertion.bind(entry.wave.flatMap { $0 > now ? $0.milliseconds : nil }, notBefore)
            try insertion.bind(entry.suppression?.rawValue, reason)
            try insertion.run()
            if isSuppressed { change.suppressed += 1 } else { change.pending += 1 }
        }
        if isLast {
            try db.execute(sql: "UPDATE run SET is_frozen = 1 WHERE id = :run", arguments: ["run": run])
        }
        return try RunRow.add(change, to: run, db)
    }
}
