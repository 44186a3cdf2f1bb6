import GRDB
import Store
import Model

/// The plain acceptances among the outcomes of one lease, recorded with one statement: in a healthy run that is nearly
/// all there is, and a statement for each costs more than the rest of the account together.
///
/// A byte per device between the first and the last says which of them it is about, and which locale each got: no row
/// that was not named can be touched, whatever lies between.
struct AcceptedRange {
    /// Below this many a statement each is no dearer.
    private static let countMin = 16
    /// Rows looked at for each one changed, at most: retries lie scattered.
    private static let sparsenessMax = 8
    /// In the byte of a device: 0 is not meant, 1 has no locale, from 2 on the locale. Higher ones would not be single
    /// characters to SQLite.
    private static let localeIndexMax = 125

    /// The status of every acceptance.
    private static let status = 200
    private static let sql = """
        UPDATE delivery SET
            state = \(DeliveryState.accepted.rawValue), leases = :number, attempt = :attempt, generation = :generation, not_before = NULL,
            status = \(status), reason = NULL,
            locale_index = nullif(unicode(substr(:codes, device_id - :first + 1, 1)) - 2, -1), changed_at = :now
        WHERE run_id = :run AND device_id BETWEEN :first AND :last AND state = \(DeliveryState.pending.rawValue)
            AND leases = :number - 1 AND substr(:codes, device_id - :first + 1, 1) <> x'00'
        """

    private let number: Int
    private let attempt: Int
    private let generation: Int
    private let first: Int64
    private let count: Int
    private var codes: [UInt8]

    /// Nil when there are too few, or when they lie too far apart.
    init?(_ settlements: ArraySlice<Settlement>) {
        guard settlements.count >= Self.countMin, let model = settlements.first(where: Self.isPlain) else { return nil }
        number = model.leaseNumber
        attempt = model.attempt
        generation = model.generation
        var first = model.device
        var last = model.device
        var count = 0
        for settlement in settlements where Self.isPlain(settlement) && Self.isAlike(settlement, model) {
            first = min(first, settlement.device)
            last = max(last, settlement.device)
            count += 1
        }
        guard count >= Self.countMin, last - first < Int64(count * Self.sparsenessMax) else { return nil }
        self.first = first
        codes = Array(repeating: 0, count: Int(last - first) + 1)
        for settlement in settlements where Self.isPlain(settlement) && Self.isAlike(settlement, model) {
            codes[Int(settlement.device - first)] = Self.code(settlement)
        }
        self.count = codes.count { $0 != 0 }
    }

    /// False, and nothing is changed, when any of them has its outcome already.
    func record(run: Int64, now: Timestamp, _ db: Database) throws -> Bool {
        var isWhole = false
        try db.inSavepoint {
            let update = try RowStatement(db, Self.sql)
            try update.bind(run, update.parameter(":run"))
            try update.bind(now.milliseconds, update.parameter(":now"))
            try update.bind(Int64(number), update.parameter(":number"))
            try update.bind(Int64(attempt), update.parameter(":attempt"))
            try update.bind(Int64(generation), update.parameter(":generation"))
            try update.bind(first, update.parameter(":first"))
            try update.bind(first + Int64(codes.count) - 1, update.parameter(":last"))
            try update.bind(codes, update.parameter(":codes"))
            try update.run()
            isWhole = update.changes == count
            return isWhole ? .commit : .rollback
        }
        return isWhole
    }

    /// Whether this outcome is among those recorded; true once for each device.
    mutating func take(_ settlement: Settlement) -> Bool {
        let index = Int(settlement.device - first)
        guard codes.indices.contains(index), Self.isPlain(settlement), settlement.leaseNumber == number,
            settlement.attempt == attempt, settlement.generation == generation, codes[index] == Self.code(settlement)
        else { return false }
        codes[index] = 0
        return true
    }

    private static func isPlain(_ settlement: Settlement) -> Bool {
        settlement.status == status && settlement.verdict == .accepted && settlement.reason == nil
            && !settlement.isInDoubt && settlement.effect == .none
            && settlement.localeIndex.map { (0...localeIndexMax).contains($0) } ?? true
    }

    private static func isAlike(_ settlement: Settlement, _ model: Settlement) -> Bool {
        settlement.leaseNumber == model.leaseNumber && settlement.attempt == model.attempt
            && settlement.generation == model.generation
    }

    private static func code(_ settlement: Settlement) -> UInt8 {
        settlement.localeIndex.map { UInt8($0 + 2) } ?? 1
    }
}
