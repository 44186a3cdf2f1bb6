package import Model

/// The outcomes of a run over time, in slots of ``slotSeconds``.
package struct Timeline: Hashable, Sendable {
    package static let slotSeconds: Int64 = 10

    /// The outcomes that were recorded within one slot.
    package struct Slot: Hashable, Sendable {
        package var startsAt: Timestamp
        package var accepted = 0
        package var rejected = 0
        package var unknown = 0
        /// Deliveries that were suppressed at the freeze count in the slot in which the freeze began.
        package var suppressed = 0
        /// Attempts that will be retried.
        package var retried = 0
        /// Rejections that were taken back, see ``DeliveryQueue/reopenMismatched(run:_:owner:now:)``.
        package var reopened = 0
        package var latencies = LatencyHistogram()

        package init(startsAt: Timestamp) { self.startsAt = startsAt }

        package mutating func add(_ other: Slot) {
            accepted += other.accepted
            rejected += other.rejected
            unknown += other.unknown
            suppressed += other.suppressed
            retried += other.retried
            reopened += other.reopened
            latencies.add(other.latencies)
        }
    }

    /// In order of time, without the slots in which nothing happened.
    package var slots: [Slot]
    /// `false` if the run began before timelines existed. Its earlier outcomes are in no slot.
    package var isWhole: Bool

    package init(slots: [Slot], isWhole: Bool) {
        self.slots = slots
        self.isWhole = isWhole
    }

    /// The sum of the slots. For a whole timeline, it equals the counts of the run.
    package var total: Slot {
        slots.reduce(into: Slot(startsAt: Timestamp(milliseconds: 0))) { $0.add($1) }
    }

    /// Returns the number of the slot of a moment, counted from 1970.
    package static func slot(of moment: Timestamp) -> Int64 { moment.milliseconds / (slotSeconds * 1000) }

    package static func start(ofSlot slot: Int64) -> Timestamp { Timestamp(milliseconds: slot * slotSeconds * 1000) }
}

/// The response times in 64 buckets, four to each doubling, from 1 ms to 65 s. The value of a bucket is within 25 % of
/// the times in it. Stores keep the buckets by number, so their bounds never change.
package struct LatencyHistogram: Hashable, Sendable {
    package static let bucketCount = 64
    /// The lower bound of the buckets, in quarters of a millisecond. A shorter time counts in the first bucket.
    private static let leastQuarterMs: Int64 = 4

    /// By bucket; empty until there is something to count.
    package private(set) var counts: [UInt32] = []

    package init() {}

    package var isEmpty: Bool { counts.isEmpty }
    package var total: Int { counts.reduce(0) { $0 + Int($1) } }

    package mutating func add(microseconds: Int64) { add(1, bucket: Self.bucket(microseconds)) }

    package mutating func add(_ count: UInt32, bucket: Int) {
        guard count > 0, bucket >= 0, bucket < Self.bucketCount else { return }
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.bucketCount) }
        let (sum, overflow) = counts[bucket].addingReportingOverflow(count)
        counts[bucket] = overflow ? .max : sum
    }

    package mutating func add(_ other: LatencyHistogram) {
        for (bucket, count) in other.counts.enumerated() { add(count, bucket: bucket) }
    }

    /// Returns the response time, in milliseconds, that this share of the responses, from 0 to 1, does not exceed. The
    /// result is the middle of a bucket; `nil` if there are no responses.
    package func milliseconds(atShare share: Double) -> Double? {
        let total = total
        guard total > 0 else { return nil }
        let wanted = max(1, Int((share * Double(total)).rounded(.up)))
        var sum = 0
        for (bucket, count) in counts.enumerated() {
            sum += Int(count)
            if sum >= wanted { return Self.middle(bucket) }
        }
        return nil
    }

    package static func bucket(_ microseconds: Int64) -> Int {
        let quarters = max(leastQuarterMs, microseconds / 250)
        let doublings = 63 - quarters.leadingZeroBitCount
        return min(bucketCount - 1, (doublings - 2) * 4 + Int(quarters >> (doublings - 2) & 3))
    }

    private static func middle(_ bucket: Int) -> Double {
        let width = Double(Int64(1) << (bucket / 4)) / 4
        return (Double(bucket % 4 + 4) + 0.5) * width
    }
}
