/// The stable shape of a run's timeline: what became of its pushes over time.
package struct TimelineResult: Codable, Hashable, Sendable {
    package struct Slot: Codable, Hashable, Sendable {
        /// ISO 8601, UTC; it lasts ``TimelineResult/slotSeconds``.
        package var startsAt: String
        package var accepted, rejected, unknown, suppressed: Int
        /// Attempts after which the push waits for another one.
        package var retried: Int
        /// From the request's first byte to its answer, in milliseconds; absent where there were no answers.
        package var p50Ms, p99Ms: Double?

        package init(
            startsAt: String, accepted: Int, rejected: Int, unknown: Int, suppressed: Int, retried: Int, p50Ms: Double?,
            p99Ms: Double?
        ) {
            self.startsAt = startsAt
            self.accepted = accepted
            self.rejected = rejected
            self.unknown = unknown
            self.suppressed = suppressed
            self.retried = retried
            self.p50Ms = p50Ms
            self.p99Ms = p99Ms
        }
    }

    package var run: Int64
    /// 10, or a multiple of it where a run lasted so long that a shorter one would make too many slots.
    package var slotSeconds: Int
    /// In order of time; those in which nothing happened are left out.
    package var slots: [Slot]

    package init(run: Int64, slotSeconds: Int, slots: [Slot]) {
        self.run = run
        self.slotSeconds = slotSeconds
        self.slots = slots
    }
}
