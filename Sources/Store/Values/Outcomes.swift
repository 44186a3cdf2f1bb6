package import Model

/// The account of a run beside what its rows say.
package struct SumCheck: Hashable, Sendable {
    package var stored: DeliveryCounts
    package var recounted: DeliveryCounts
    /// One sentence each; empty when the sums close and agree.
    package var problems: [String]
    /// When the rows were pruned: what is recounted is the summary that stands for them. Nil: every row was counted.
    package var prunedAt: Timestamp?

    package init(
        stored: DeliveryCounts, recounted: DeliveryCounts, problems: [String], prunedAt: Timestamp? = nil
    ) {
        self.stored = stored
        self.recounted = recounted
        self.problems = problems
        self.prunedAt = prunedAt
    }

    package var isGood: Bool { problems.isEmpty }
}

/// One delivery, for an export.
package struct OutcomeRow: Hashable, Sendable {
    package var device: Int64
    /// Nil when unknown, or when the device is no longer stored.
    package var installationID: String?
    /// The last 8 characters of the token the device has now.
    package var tokenEnd: String?
    package var environment: PushEnvironment
    /// The device's, as it was when the audience was frozen; as it is now in a run that an earlier version froze.
    package var locale: String?
    package var state: DeliveryState
    package var status: Int
    package var reason: String?
    /// Requests made.
    package var attempts: Int
    /// Those of them whose answer was lost: APNs may have accepted each.
    package var doubts: Int
    /// Nil while pending.
    package var settledAt: Timestamp?
    package var generation: Int
    /// Index into the campaign's variants; nil without variants and for the holdout.
    package var variant: Int?
    /// Index into the locales of the variant's template; nil for a text that is not localized or was never rendered.
    package var localeIndex: Int?
    /// The device's, as it was when the audience was frozen.
    package var appVersion: String?

    package init(
        device: Int64, installationID: String?, tokenEnd: String?, environment: PushEnvironment, locale: String?,
        state: DeliveryState, status: Int, reason: String?, attempts: Int, doubts: Int, settledAt: Timestamp?,
        generation: Int, variant: Int?, localeIndex: Int? = nil, appVersion: String? = nil
    ) {
        self.localeIndex = localeIndex
        self.appVersion = appVersion
        self.device = device
        self.installationID = installationID
        self.tokenEnd = tokenEnd
        self.environment = environment
        self.locale = locale
        self.state = state
        self.status = status
        self.reason = reason
        self.attempts = attempts
        self.doubts = doubts
        self.settledAt = settledAt
        self.generation = generation
        self.variant = variant
    }
}

/// What one run did about one device.
package struct DeviceDelivery: Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    package var isTest: Bool
    package var outcome: OutcomeRow
    package var notBefore: Timestamp?
    package var isLeased: Bool
    /// Why it was last put off on purpose before a request, and until when; nil if it never was.
    package var heldFor: SuppressionReason?
    package var heldUntil: Timestamp?

    package init(
        run: Int64, campaign: String, occurrence: String, isTest: Bool, outcome: OutcomeRow, notBefore: Timestamp?,
        isLeased: Bool, heldFor: SuppressionReason?, heldUntil: Timestamp?
    ) {
        self.run = run
        self.campaign = campaign
        self.occurrence = occurrence
        self.isTest = isTest
        self.outcome = outcome
        self.notBefore = notBefore
        self.isLeased = isLeased
        self.heldFor = heldFor
        self.heldUntil = heldUntil
    }
}

/// The silent ledger against its own rule.
package struct LedgerCheck: Hashable, Sendable {
    package var devices: Int
    package var pushes: Int
    /// Pushes reserved while the window might already have been full. Always 0.
    package var violations: Int

    package init(devices: Int, pushes: Int, violations: Int) {
        self.devices = devices
        self.pushes = pushes
        self.violations = violations
    }
}

/// What pruning outcomes folded into summaries and deleted, or would.
package struct OutcomePruneCounts: Hashable, Sendable {
    package var runs = 0
    package var deliveries = 0
    /// Old enough, but their account does not close: the rows are needed to find out why. See ``OutcomeReader/check(_:)``.
    package var kept = 0

    package init() {}
}

/// How much of the store's file is in use.
package struct StoreSize: Hashable, Sendable {
    package var bytes: Int
    /// Of them, free for whatever is written next.
    package var freeBytes: Int

    package init(bytes: Int, freeBytes: Int) {
        self.bytes = bytes
        self.freeBytes = freeBytes
    }
}

/// Everything the store knows of one device, as recorded; a use case puts it into words.
package struct DeviceStory: Hashable, Sendable {
    /// One run, and what it did about the device.
    package struct Chapter: Hashable, Sendable {
        package var run: Run
        /// Nil: the device was not in the audience when it was frozen, or that was pruned.
        package var delivery: DeviceDelivery?
        /// When the run's outcomes by device were pruned: whether the device was in its audience is not known any more.
        package var prunedAt: Timestamp?

        package init(run: Run, delivery: DeviceDelivery?, prunedAt: Timestamp? = nil) {
            self.run = run
            self.delivery = delivery
            self.prunedAt = prunedAt
        }
    }

    package struct OldToken: Hashable, Sendable {
        package var generation: Int
        package var token: DeviceToken
        package var environment: PushEnvironment
        package var replacedAt: Timestamp

        package init(generation: Int, token: DeviceToken, environment: PushEnvironment, replacedAt: Timestamp) {
            self.generation = generation
            self.token = token
            self.environment = environment
            self.replacedAt = replacedAt
        }
    }

    package var device: StoredDevice
    /// Oldest first.
    package var oldTokens: [OldToken]
    /// Oldest first; of the runs that left the device out, those of its topic.
    package var chapters: [Chapter]
    /// There were more runs, before these.
    package var isCut: Bool
    /// When the outcome of each background push in the silent ledger came; nil while in flight.
    package var silentPushes: [Timestamp?]
    /// Visible pushes under frequency caps, the device's own and those of its user's other devices.
    package var cappedPushes: [CappedPush] = []

    package struct CappedPush: Hashable, Sendable {
        package var pushClass: String
        /// When its outcome came; nil while in flight.
        package var settledAt: Timestamp?
        /// False: another device of the same user got it.
        package var isOwn: Bool
    }

    package init(
        device: StoredDevice, oldTokens: [OldToken] = [], chapters: [Chapter] = [], isCut: Bool = false,
        silentPushes: [Timestamp?] = []
    ) {
        self.device = device
        self.oldTokens = oldTokens
        self.chapters = chapters
        self.isCut = isCut
        self.silentPushes = silentPushes
    }
}

extension DeviceStory {
    /// How many of the silent budget's slots are used now, and when the next is free, which may be now.
    package func silentBudget(
        _ budget: Configuration.SilentBudget, now: Timestamp
    ) -> (used: Int, nextSlot: Timestamp?) {
        Self.standing(RollingWindow(budget, at: now), silentPushes)
    }

    /// The same of a frequency cap, for a push of a class that no slots are kept for.
    package func frequencyCap(_ cap: FrequencyCap, now: Timestamp) -> (used: Int, nextSlot: Timestamp?) {
        let pushes = cappedPushes.filter { cap.covers($0.pushClass) && ($0.isOwn || cap.per == .user) }
        let window = RollingWindow(limit: cap.limit(for: ""), length: cap.window, for: .frequencyCap, at: now)
        return Self.standing(window, pushes.map(\.settledAt))
    }

    private static func standing(_ window: RollingWindow, _ ends: [Timestamp?]) -> (used: Int, nextSlot: Timestamp?) {
        let used = ends.count(where: window.counts)
        switch window.decide(ends: ends, expiresAt: nil) {
        case .send: return (used, window.now)
        case .wait(let moment, _): return (used, moment)
        case .suppress, .move: return (used, nil)
        }
    }
}

/// The deliveries of one run that start at one moment, of devices that are in one time zone now.
package struct WaveShare: Hashable, Sendable {
    package var startsAt: Timestamp
    /// Nil: not known, or the device is gone.
    package var zone: String?
    package var deliveries: Int

    package init(startsAt: Timestamp, zone: String?, deliveries: Int) {
        self.startsAt = startsAt
        self.zone = zone
        self.deliveries = deliveries
    }
}

/// How many deliveries of an environment APNs decided on, and how many of those it found ``TokenVerdict/mismatched`` and
/// ``TokenVerdict/gone``.
package struct MismatchCount: Hashable, Sendable {
    package var environment: PushEnvironment
    package var all: Int
    package var wrong: Int
    package var gone: Int

    package init(environment: PushEnvironment, all: Int, wrong: Int, gone: Int = 0) {
        self.gone = gone
        self.environment = environment
        self.all = all
        self.wrong = wrong
    }
}
