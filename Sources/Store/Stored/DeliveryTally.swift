package import Model

/// Counts the deliveries of a run in one pass over its rows; grouping a million rows in SQL would sort them first.
package struct DeliveryTally: Hashable {
    package struct Group: Hashable {
        package var environment: PushEnvironment
        package var variant: Int?
        /// Index into the locales of the variant's template.
        package var localeIndex: Int?
        package var state: DeliveryState
        package var isLeased: Bool
        package var status: Int
        package var reason: String?

        package init(
            environment: PushEnvironment, variant: Int?, localeIndex: Int?, state: DeliveryState, isLeased: Bool,
            status: Int, reason: String?
        ) {
            self.environment = environment
            self.variant = variant
            self.localeIndex = localeIndex
            self.state = state
            self.isLeased = isLeased
            self.status = status
            self.reason = reason
        }
    }

    private static let accepted = DeliveryState.accepted.code

    package private(set) var counts: [Group: Int] = [:]
    package private(set) var attempts = 0
    /// The number of deliveries that were accepted after an attempt with an unknown outcome.
    package private(set) var possibleDuplicates = 0

    /// A checksum over the outcomes. It also changes if two deliveries exchange their outcomes. `nil` if it is not
    /// stored.
    package private(set) var digest: Int64?

    /// `nil` for a summary of an earlier version.
    package private(set) var breakdown: DeliveryBreakdown?

    private var running = RunningGroups()
    private var places = BreakdownCounter()
    private var sum = 0

    package init(
        counts: [Group: Int], attempts: Int, possibleDuplicates: Int, digest: Int64?,
        breakdown: DeliveryBreakdown? = nil
    ) {
        self.breakdown = breakdown
        self.counts = counts
        self.attempts = attempts
        self.possibleDuplicates = possibleDuplicates
        self.digest = digest
    }

    /// Returns whether both tallies describe the same rows, by the figures that both have.
    package func agrees(with other: DeliveryTally) -> Bool {
        var this = self
        var other = other
        if digest == nil || other.digest == nil { other.digest = digest }
        if let mine = breakdown, let theirs = other.breakdown {
            (this.breakdown, other.breakdown) = (mine.shared(with: theirs), theirs.shared(with: mine))
        } else {
            (this.breakdown, other.breakdown) = (nil, nil)
        }
        return this == other
    }

    /// Creates a tally of no deliveries.
    package init() {}

    /// The columns of a delivery's row.
    package struct Row {
        package var device, environment, state, status, attempt, doubts, generation, changedAt: Int64
        package var variant, localeIndex: Int64?
        package var reason: String?
        package var isLeased: Bool
        /// The number of its ``DeliveryProfile``, its wave, and its stage; the last stage is `nil`.
        package var profile, wave, stage: Int64?

        package init(
            device: Int64, environment: Int64, state: Int64, status: Int64, attempt: Int64, doubts: Int64,
            generation: Int64, changedAt: Int64, variant: Int64?, localeIndex: Int64?, reason: String?, isLeased: Bool,
            profile: Int64?, wave: Int64?, stage: Int64?
        ) {
            self.profile = profile
            self.wave = wave
            self.stage = stage
            self.device = device
            self.environment = environment
            self.state = state
            self.status = status
            self.attempt = attempt
            self.doubts = doubts
            self.generation = generation
            self.changedAt = changedAt
            self.variant = variant
            self.localeIndex = localeIndex
            self.reason = reason
            self.isLeased = isLeased
        }
    }

    /// Adds a row. Call it for every row, and then ``finish(_:)``.
    package mutating func add(_ row: Row) {
        running.add(
            RunningGroups.Key(
                environment: row.environment, variant: row.variant ?? -1, localeIndex: row.localeIndex ?? -1,
                state: row.state, isLeased: row.isLeased, status: row.status, reason: row.reason))
        places.add(row)
        attempts += Int(row.attempt)
        sum &+= Self.hash(row)
        if row.state == Self.accepted, row.doubts > 0 { possibleDuplicates += 1 }
    }

    /// The numbers of the profiles that ``finish(_:)`` needs.
    package var profiles: Set<Int64> { places.profiles }

    package mutating func finish(_ profiles: [Int64: DeliveryProfile]) {
        breakdown = places.finished(profiles)
        places = BreakdownCounter()
        digest = Int64(sum)
        for (key, count) in running.finished() { counts[Self.group(key), default: 0] += count }
        running = RunningGroups()
        sum = 0
    }

    /// Returns a hash of device, state, status, attempts, doubts, generation and time. The algorithm is frozen with
    /// the schema, because sums of the hashes are stored. It allocates nothing, because it is called for every row.
    private static func hash(_ row: Row) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func mix(_ value: Int64) {
            hash = (hash ^ UInt64(bitPattern: value)) &* 0x9e37_79b9_7f4a_7c15
            hash ^= hash >> 29
        }
        mix(row.device)
        mix(row.state)
        mix(row.status)
        mix(row.attempt)
        mix(row.doubts)
        mix(row.generation)
        mix(row.changedAt)
        return Int(truncatingIfNeeded: hash)
    }

    /// The counts of the run according to its rows.
    package var total: DeliveryCounts { sum { _ in true } }

    package func sum(where isIncluded: (Group) -> Bool) -> DeliveryCounts {
        var sum = DeliveryCounts()
        for (group, count) in counts where isIncluded(group) {
            sum.add(count, group.state, isLeased: group.isLeased)
        }
        return sum
    }

    private static func group(_ key: RunningGroups.Key) -> Group {
        Group(
            environment: PushEnvironment(code: key.environment), variant: key.variant < 0 ? nil : Int(key.variant),
            localeIndex: key.localeIndex < 0 ? nil : Int(key.localeIndex),
            state: DeliveryState(code: key.state), isLeased: key.isLeased, status: Int(key.status),
            reason: key.reason)
    }
}

/// Counts keys. The first 16 distinct keys, which most rows have, are found without hashing.
private struct RunningGroups: Hashable {
    struct Key: Hashable {
        var environment, variant, localeIndex, state: Int64
        package var isLeased: Bool
        var status: Int64
        package var reason: String?
    }

    private struct Counted: Hashable {
        let key: Key
        var count: Int
    }

    private static let recentMax = 16
    private var recent: [Counted] = []
    private var others: [Key: Int] = [:]

    mutating func add(_ key: Key) {
        for index in recent.indices where recent[index].key == key {
            recent[index].count += 1
            return
        }
        if recent.count < Self.recentMax {
            recent.append(Counted(key: key, count: 1))
        } else {
            others[key, default: 0] += 1
        }
    }

    func finished() -> [Key: Int] {
        recent.reduce(into: others) { $0[$1.key, default: 0] += $1.count }
    }
}
