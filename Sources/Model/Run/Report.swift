/// What became of a run, ready to print: every figure comes from recorded deliveries.
package struct Report: Hashable, Sendable {
    package struct Reason: Hashable, Sendable {
        package var status: Int
        package var reason: String
        package var count: Int

        package init(status: Int, reason: String, count: Int) {
            self.status = status
            self.reason = reason
            self.count = count
        }
    }

    /// One line of a breakdown: by environment, by locale or by variant.
    package struct Slice: Hashable, Sendable {
        package var name: String
        package var counts: DeliveryCounts

        package init(name: String, counts: DeliveryCounts) {
            self.name = name
            self.counts = counts
        }
    }

    package var run: Run
    package var counts: DeliveryCounts
    package var rejected: [Reason]
    package var unknown: [Reason]
    package var suppressed: [Reason]
    package var byEnvironment: [Slice]
    /// By the locale block that was rendered; deliveries that were never rendered are in none.
    package var byLocale: [Slice]
    /// By the variant's name, in the campaign's order; the holdout has no variant.
    package var byVariant: [Slice]
    /// Requests made, retries included.
    package var attempts: Int
    /// Accepted deliveries of which an earlier attempt stayed without an answer: APNs may have had them twice.
    package var possibleDuplicates: Int
    /// Devices whose token this run found gone, and those it suspended.
    package var devicesGone: Int
    package var devicesSuspended: Int

    package init(run: Run, counts: DeliveryCounts) {
        self.run = run
        self.counts = counts
        rejected = []
        unknown = []
        suppressed = []
        byEnvironment = []
        byLocale = []
        byVariant = []
        attempts = 0
        possibleDuplicates = 0
        devicesGone = 0
        devicesSuspended = 0
    }
}
