import GRDB
import Store
import Model

/// The plain acceptances among the outcomes of one lease, recorded with one statement. In a healthy run, nearly all
/// outcomes are plain acceptances. A statement for each costs more than the rest of the recording together.
///
/// A blob with one byte for each id from the first device to the last selects the devices and gives their locales.
/// The statement changes no other row in that range.
struct AcceptedRange {
    /// The minimum number of acceptances. Below it, one statement for each is no slower.
    private static let countMin = 16
    /// The maximum number of ids in the range for each acceptance. The acceptances of retries may be too scattered.
    private static let sparsenessMax = 8
    /// The highest locale index that fits in a device's byte. The byte is 0 if the device is not selected, 1 if it
    /// has no locale, and otherwise its locale index plus 2.
    private static let localeIndexMax = 253

    /// The status of every acceptance.
    private static let status = 200
    private static let sql = """
        UPDATE delivery SET
            state = \(DeliveryState.accepted.rawValue), leases = :number, attempt = :attempt, generation = :generation, not_before = NULL,
            status = \(status), reason = NULL,
            locale_index = nullif(byte_at(:codes, device_id - :first) - 2, -1), changed_at = :now
        WHERE run_id = :run AND device_id BETWEEN :first AND :last AND state = \(DeliveryState.pending.rawValue)
            AND leases = :number - 1 AND byte_at(:codes, device_id - :first) > 0
        """

    private let number: Int
    private let attempt: Int
    private let generation: Int
    private let first: Int64
    private let count: Int
    private var codes: [UInt8]

    /// Returns `nil` if there are too few acceptances, or if they are too scattered.
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

    /// Returns `false` and changes nothing if any of the deliveries already has its outcome.
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

    /// Returns whether the range recorded this outcome. Returns `true` only once for each device.
    mutating func add(_ settlement: Settlement) -> Bool {
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
