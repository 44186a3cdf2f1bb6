package import Model

/// The stored counts of a run, beside the counts of its rows.
package struct SumCheck: Hashable, Sendable {
    package var stored: DeliveryCounts
    package var recounted: DeliveryCounts
    /// The faults, one sentence each; empty if the counts balance and agree.
    package var problems: [String]
    /// When the rows were pruned; the recount then uses the summary. `nil` if every row was counted.
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
    /// `nil` if it is unknown, or if the device is no longer stored.
    package var installationID: String?
    /// The last 8 characters of the device's present token.
    package var tokenEnd: String?
    package var environment: PushEnvironment
    /// The device's locale at the freeze; its present locale in a run that an earlier version froze.
    package var locale: String?
    package var state: DeliveryState
    package var status: Int
    package var reason: String?
    /// The number of requests.
    package var attempts: Int
    /// The number of requests whose response was lost. APNs may have accepted each.
    package var doubts: Int
    /// `nil` while pending.
    package var settledAt: Timestamp?
    package var generation: Int
    /// Index into the campaign's variants; `nil` without variants and for the holdout.
    package var variant: Int?
    /// Index into the locales of the variant's template; `nil` for a text that is not localized or was never rendered.
    package var localeIndex: Int?
    /// The device's app version at the freeze.
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

/// The delivery of one run to one device.
package struct DeviceDelivery: Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    package var isTest: Bool
    package var outcome: OutcomeRow
    package var notBefore: Timestamp?
    package var isLeased: Bool
    /// Why it was last put off on purpose before a request, and until when; `nil` if it never was.
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

/// The result of checking the silent ledger against its own rule.
package struct LedgerCheck: Hashable, Sendable {
    package var devices: Int
    package var pushes: Int
    /// Pushes that were reserved while the window might already have been full. It is 0 unless the ledger is wrong.
    package var violations: Int

    package init(devices: Int, pushes: Int, violations: Int) {
        self.devices = devices
        self.pushes = pushes
        self.violations = violations
    }
}

/// The numbers of outcomes that a prune replaced by summaries, or would replace if it is a dry run.
package struct OutcomePruneCounts: Hashable, Sendable {
    package var runs = 0
    package var deliveries = 0
    /// The runs that are old enough, but whose counts do not balance. Their rows are needed to find out why, see
    /// ``OutcomeReader/check(_:)``.
    package var unbalanced = 0
    /// The runs that are old enough, but whose rows another transaction was reading. The next call deletes them.
    package var inUse = 0

    /// The runs that are old enough and keep their rows.
    package var kept: Int { unbalanced + inUse }

    package init() {}
}

/// What became of the deliveries of a run that were to be dropped.
package enum OutcomeDrop: Hashable, Sendable {
    case dropped(deliveries: Int)
    /// The run has no summary, because its counts do not balance.
    case unbalanced
    /// Another transaction reads them.
    case inUse
    /// Another call has dropped them.
    case droppedBefore
}

/// How much of the store's file is in use.
package struct StoreSize: Hashable, Sendable {
    package var bytes: Int
    /// The part of ``bytes`` that is free for later writes.
    package var freeBytes: Int

    package init(bytes: Int, freeBytes: Int) {
        self.bytes = bytes
        self.freeBytes = freeBytes
    }
}

/// Everything that the store knows about one device, as recorded. A use case puts it into words.
package struct DeviceHistory: Hashable, Sendable {
    /// One run, and its delivery to the device.
    package struct Entry: Hashable, Sendable {
        package var run: Run
        /// `nil` if the device was not in the audience at the freeze, or if its outcome was pruned.
        package var delivery: DeviceDelivery?
        /// When the run's outcomes by device were pruned. It is then unknown whether the device was in its audience.
        package var prunedAt: Timestamp?
        /// The conditions of the run's audience that the device's present data do not meet; all must hold. `nil` if the
        /// run had the device, or if the conditions cannot be told apart.
        package var unmet: [AudienceExpression]?
        /// `nil` in a run without `best_hour`, and if the device got no turn.
        package var hour: Hour?

        package init(
            run: Run, delivery: DeviceDelivery?, prunedAt: Timestamp? = nil, unmet: [AudienceExpression]? = nil
        ) {
            self.run = run
            self.delivery = delivery
            self.prunedAt = prunedAt
            self.unmet = unmet
        }
    }

    /// The turn of a device in a run with `best_hour`.
    package struct Hour: Hashable, Sendable {
        package var wave: Timestamp
        /// The opens that counted, as quarters of an hour since 1970. Those of a device that was removed, or whose
        /// events were deleted, are missing.
        package var opens: [Int64]

        package init(wave: Timestamp, opens: [Int64]) {
            self.wave = wave
            self.opens = opens
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
    /// Oldest first. Runs that left the device out are listed only if they are of its topic.
    package var entries: [Entry]
    /// Whether there were more runs before these.
    package var isCut: Bool
    /// When the outcome of each background push in the silent ledger came; `nil` while in flight.
    package var silentPushes: [Timestamp?]
    /// Visible pushes under frequency caps, the device's own and those of its user's other devices.
    package var cappedPushes: [CappedPush] = []

    package struct CappedPush: Hashable, Sendable {
        package var pushClass: String
        /// When its outcome came; `nil` while in flight.
        package var settledAt: Timestamp?
        /// `false` if another device of the same user got the push.
        package var isOwn: Bool
    }

    package init(
        device: StoredDevice, oldTokens: [OldToken] = [], entries: [Entry] = [], isCut: Bool = false,
        silentPushes: [Timestamp?] = []
    ) {
        self.device = device
        self.oldTokens = oldTokens
        self.entries = entries
        self.isCut = isCut
        self.silentPushes = silentPushes
    }
}

extension DeviceHistory {
    /// Returns how many slots of the silent budget are used now, and when the next one is free, which may be now.
    package func silentBudget(
        _ budget: Configuration.SilentBudget, now: Timestamp
    ) -> (used: Int, nextSlot: Timestamp?) {
        Self.standing(RollingWindow(budget, at: now), silentPushes)
    }

    /// Returns the same for a frequency cap, for a push of a class without reserved slots.
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
    /// `nil` if the zone is not known, or if the device is gone.
    package var zone: String?
    package var deliveries: Int

    package init(startsAt: Timestamp, zone: String?, deliveries: Int) {
        self.startsAt = startsAt
        self.zone = zone
        self.deliveries = deliveries
    }
}

/// The number of deliveries of an environment that APNs decided on, and the numbers of those that it found
/// ``TokenVerdict/mismatched`` and ``TokenVerdict/gone``.
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
