import GRDB
import Store
import Model

/// Counts the deliveries of a run in one pass over its rows; grouping a million rows in SQL would sort them first.
struct DeliveryTally: Hashable {
    struct Group: Hashable {
        var environment: PushEnvironment
        var variant: Int?
        /// Into the locales of the variant's template.
        var localeIndex: Int?
        var state: DeliveryState
        var isLeased: Bool
        var status: Int
        var reason: String?
    }

    private static let pending = DeliveryState.pending.code
    private static let accepted = DeliveryState.accepted.code

    private(set) var counts: [Group: Int] = [:]
    private(set) var attempts = 0
    /// Accepted after an attempt whose outcome nobody knows.
    private(set) var possibleDuplicates = 0

    /// A sum over what became of each delivery, so that two that change places do not cancel out; nil: not kept.
    private(set) var digest: Int64?

    init(counts: [Group: Int], attempts: Int, possibleDuplicates: Int, digest: Int64?) {
        self.counts = counts
        self.attempts = attempts
        self.possibleDuplicates = possibleDuplicates
        self.digest = digest
    }

    /// Whether both are of the same rows, as far as both know them.
    func agrees(with other: DeliveryTally) -> Bool {
        var other = other
        if digest == nil || other.digest == nil { other.digest = digest }
        return self == other
    }

    init(_ db: Database, run: Int64) throws {
        let leased = try Self.leased(db, run: run)
        let rows = try RowStatement(
            db,
            """
            SELECT device_id, environment, locale_index, state, status, reason, attempt, doubts, variant, leases, generation,
                changed_at
            FROM delivery WHERE run_id = :run
            """)
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        var groups = RunningGroups()
        var sum = 0
        while try rows.step() {
            let state = rows.int64(3)
            let isLeased = state == Self.pending && leased[rows.int64(0)] == rows.int(9) + 1
            let key = RunningGroups.Key(
                environment: rows.int64(1), variant: rows.int64OrNil(8) ?? -1, localeIndex: rows.int64OrNil(2) ?? -1,
                state: state, isLeased: isLeased, status: rows.int64(4), reason: rows.text(5))
            groups.add(key)
            attempts += rows.int(6)
            sum &+= Self.hash(rows)
            if state == Self.accepted, rows.int64(7) > 0 { possibleDuplicates += 1 }
        }
        digest = Int64(sum)
        for (key, count) in groups.finished() { counts[Self.group(key), default: 0] += count }
    }

    /// Device, state, status, attempts, doubts, generation and time.
    private static let hashed: [Int32] = [0, 3, 4, 6, 7, 10, 11]

    /// Frozen with the schema: sums of it are stored. Nothing is allocated, since it is called for every row.
    private static func hash(_ rows: RowStatement) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for column in Self.hashed {
            hash = (hash ^ UInt64(bitPattern: rows.int64(column))) &* 0x9e37_79b9_7f4a_7c15
            hash ^= hash >> 29
        }
        return Int(truncatingIfNeeded: hash)
    }

    /// The account as the rows tell it.
    var total: DeliveryCounts { sum { _ in true } }

    func sum(where isIncluded: (Group) -> Bool) -> DeliveryCounts {
        var sum = DeliveryCounts()
        for (group, count) in counts where isIncluded(group) {
            sum.audience += count
            switch group.state {
            case .pending where group.isLeased: sum.leased += count
            case .pending: sum.pending += count
            case .accepted: sum.accepted += count
            case .rejected: sum.rejected += count
            case .unknown: sum.unknown += count
            case .suppressed: sum.suppressed += count
            }
        }
        return sum
    }

    /// Device to the number of its lease.
    static func leased(_ db: Database, run: Int64) throws -> [Int64: Int] {
        let rows = try RowStatement(db, "SELECT entries FROM lease WHERE run_id = :run")
        defer { rows.reset() }
        try rows.bind(run, rows.parameter(":run"))
        var leased: [Int64: Int] = [:]
        while try rows.step() {
            for entry in LeaseEntry.unpack(rows.bytes(0)) {
                leased[entry.device] = max(entry.number, leased[entry.device] ?? 0)
            }
        }
        return leased
    }

    private static func group(_ key: RunningGroups.Key) -> Group {
        Group(
            environment: PushEnvironment(code: key.environment), variant: key.variant < 0 ? nil : Int(key.variant),
            localeIndex: key.localeIndex < 0 ? nil : Int(key.localeIndex),
            state: DeliveryState(code: key.state), isLeased: key.isLeased, status: Int(key.status),
            reason: key.reason)
    }
}

/// Counts keys, most of which equal one of the last few: those are found without hashing.
private struct RunningGroups {
    struct Key: Hashable {
        var environment, variant, localeIndex, state: Int64
        var isLeased: Bool
        var status: Int64
        var reason: String?
    }

    private static let recentMax = 16
    private var recent: [(key: Key, count: Int)] = []
    private var others: [Key: Int] = [:]

    mutating func add(_ key: Key) {
        for index in recent.indices where recent[index].key == key {
            recent[index].count += 1
            return
        }
        if recent.count < Self.recentMax {
            recent.append((key, 1))
        } else {
            others[key, default: 0] += 1
        }
    }

    func finished() -> [Key: Int] {
        recent.reduce(into: others) { $0[$1.key, default: 0] += $1.count }
    }
}
