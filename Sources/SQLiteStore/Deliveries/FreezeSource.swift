import GRDB
import Model
import RelationalStore
import Store

/// The devices of a run's audience, in order of id, read from one snapshot.
struct FreezeSource {
    private let rows: RowStatement
    private var audience: FreezeAudience
    private var batchRows = StoreLimits.freezeFirstBatchRows
    private var isAtEnd = false

    init(_ db: Database, _ run: Run, _ selection: AudienceSelection) throws {
        audience = try FreezeAudience(db, run, selection)
        rows = try db.prepare(audience.query, audience.values)
    }

    /// Returns `nil` after the last batch.
    mutating func nextBatch() throws -> FrozenDeliveries? {
        guard !isAtEnd else { return nil }
        var batch = FrozenDeliveries()
        batch.deliveries.reserveCapacity(batchRows)
        while batch.deliveries.count < batchRows {
            guard try rows.step() else {
                isAtEnd = true
                break
            }
            guard let decision = try decision() else { continue }
            batch.deliveries.append(
                FrozenDelivery(
                    device: rows.int64(0), environment: rows.int64(1), generation: rows.int64(2), decision: decision,
                    profile: profile(&batch.profiles)))
        }
        batchRows = StoreLimits.freezeBatchRows
        return batch.deliveries.isEmpty ? nil : batch
    }

    /// Returns `nil` if the delivery is already written.
    private mutating func decision() throws -> FreezePolicy.Decision? {
        let rows = rows
        let device = rows.int64(0)
        let settledAt = audience.settledColumn.flatMap { rows.int64OrNil(Int32($0)) }
        let userColumn = audience.userColumn.map { Int32($0) }
        return try audience.decide(device, settledAt: Timestamp(stored: settledAt)) { policy in
            policy.decide(
                device: device, PushEnvironment(code: rows.int64(1)), status: DeviceStatus(code: rows.int64(3)),
                alertsAllowed: rows.isNull(4) || rows.int64(4) != 0, user: { userColumn.flatMap { rows.text($0) } },
                stratum: { StageSample.Stratum(locale: rows.textHash(5), zone: rows.textHash(7)) },
                zone: { rows.text(7) })
        }
    }

    /// Returns the index of the row's profile. Finds it by a hash of its texts, so that a known profile copies no
    /// text.
    private func profile(_ profiles: inout BatchProfiles) -> Int {
        var hash: UInt64 = 0
        for column in Self.profileColumns { hash = BatchProfiles.key(hash, adding: rows.textHash(column)) }
        return profiles.index(hash) {
            DeliveryProfile(
                locale: rows.text(5), appVersion: rows.text(6), timeZone: rows.text(7), country: rows.text(8))
        }
    }

    private static let profileColumns: ClosedRange<Int32> = 5...8

    func close() { rows.reset() }
}

extension FrozenDeliveries {
    /// Inserts the deliveries and counts them, in the transaction of `db`.
    func insert(into db: Database, run: Int64, at now: Timestamp) throws {
        let profiles = try DeliveryProfiles(db).numbers(of: self.profiles.all)
        var start = 0
        for rows in DeliveryInsertion.rowCounts where deliveries.count - start >= rows {
            let insertion = try DeliveryInsertion(db, rows: rows, run: run, now: now)
            while deliveries.count - start >= rows {
                try insertion.insert(deliveries[start..<start + rows], profiles)
                start += rows
            }
        }
        try count(run: run, at: now, db)
    }
}

/// A statement that inserts several deliveries. The fixed cost of an execution is about as high as the cost of one
/// row.
private struct DeliveryInsertion {
    /// The numbers of rows for which there is a statement, largest first. A larger number would save little.
    static let rowCounts = [20, 1]

    private static let columns = 10
    private static let texts = rowCounts.map { text(rows: $0) }

    private let statement: RowStatement
    private let now: Timestamp

    /// - Parameter rows: one of ``rowCounts``.
    init(_ db: Database, rows: Int, run: Int64, now: Timestamp) throws {
        let place = Self.rowCounts.firstIndex(of: rows) ?? 0
        statement = try RowStatement(db, Self.texts[place])
        self.now = now
        try statement.bind(run, 1)
        try statement.bind(now.milliseconds, 2)
    }

    /// Returns the text of a statement. All rows share the first two parameters. The parameters of each row follow,
    /// in order.
    private static func text(rows: Int) -> String {
        let values = (0..<rows).map { row in
            let mark = (0..<columns).map { "?\(3 + row * columns + $0)" }
            return """
                (?1, \(mark[0]), \(mark[1]), \(mark[2]), 0, 0, \(mark[3]), \(mark[4]), \(mark[5]), \(mark[6]), \
                \(mark[7]), NULL, 0, \(mark[8]), ?2, \(mark[9]))
                """
        }
        return """
            INSERT INTO delivery (
                run_id, device_id, environment, state, attempt, doubts, generation, variant, wave, stage, not_before,
                locale_index, status, reason, changed_at, profile
            ) VALUES \(values.joined(separator: ", "))
            """
    }

    func insert(_ deliveries: ArraySlice<FrozenDelivery>, _ profiles: [Int64]) throws {
        var parameter: RowStatement.Parameter = 3
        for delivery in deliveries {
            try bind(delivery, profiles[delivery.profile], at: parameter)
            parameter += RowStatement.Parameter(Self.columns)
        }
        try statement.run()
    }

    private func bind(_ delivery: FrozenDelivery, _ profile: Int64, at first: RowStatement.Parameter) throws {
        let decision = delivery.decision
        let state = decision.suppression == nil ? DeliveryState.pending : .suppressed
        try statement.bind(delivery.device, first)
        try statement.bind(delivery.environment, first + 1)
        try statement.bind(state.code, first + 2)
        try statement.bind(delivery.generation, first + 3)
        try statement.bind(decision.variant.map(Int64.init), first + 4)
        try statement.bind(decision.wave?.milliseconds, first + 5)
        try statement.bind(decision.storedStage.map(Int64.init), first + 6)
        try statement.bind(decision.notBefore(at: now), first + 7)
        try statement.bind(decision.suppression?.rawValue, first + 8)
        try statement.bind(profile, first + 9)
    }
}
