/// One occurrence of a campaign, with its definition frozen.
package struct Run: Hashable, Sendable {
    package var id: Int64
    package var campaign: String
    /// Unique with the campaign: timer, daemon, person and a retried call all mean the same run.
    package var occurrence: String
    package var definition: RunDefinition
    package var state: RunState
    /// Why it is paused or failed, in words for a person.
    package var stateReason: String?
    package var counts: DeliveryCounts
    /// False while the audience is still being written down.
    package var isFrozen: Bool
    /// Sent to one device by hand to look at it; kept out of campaign reports.
    package var isTest: Bool
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The process that sends it; nil when none does.
    package var owner: String?
    /// When the owner was last heard of.
    package var heartbeatAt: Timestamp?
    /// The person who paused it and whom it waits for; nil where it paused itself.
    package var pausedBy: String?
    /// What a paused run met, where it paused itself.
    package var halt: RunHalt?

    package init(
        id: Int64, campaign: String, occurrence: String, definition: RunDefinition, state: RunState,
        stateReason: String? = nil, counts: DeliveryCounts = DeliveryCounts(), isFrozen: Bool = false,
        isTest: Bool = false, createdAt: Timestamp, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil,
        owner: String? = nil, heartbeatAt: Timestamp? = nil, pausedBy: String? = nil, halt: RunHalt? = nil
    ) {
        self.id = id
        self.campaign = campaign
        self.occurrence = occurrence
        self.definition = definition
        self.state = state
        self.stateReason = stateReason
        self.counts = counts
        self.isFrozen = isFrozen
        self.isTest = isTest
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.owner = owner
        self.heartbeatAt = heartbeatAt
        self.pausedBy = pausedBy
        self.halt = halt
    }
}

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
