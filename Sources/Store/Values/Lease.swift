package import Model

/// A request to lease deliveries for sending.
package struct LeaseRequest: Sendable {
    package var run: Int64
    package var environment: PushEnvironment
    /// The cursor of the previous lease, so that fewer rows are read; 0 at the start and after a recovery.
    package var after: Int64
    /// The maximum number of deliveries.
    package var limit: Int
    package var now: Timestamp
    /// All clocks at ``now``. They are needed for budgets, for caps and for the holds of stages, none of which may end
    /// early because a clock was set. They are also needed for ``paces`` and for ``goesByWallClock``, and after a step
    /// of the clock, which the lease records first.
    package var clocks: ClockReading?
    package var owner: String
    /// The fields of the device that the template prints.
    package var fields: [AudienceField]
    /// The budget of background pushes. Its slots are reserved in the same transaction.
    package var silentBudget: Configuration.SilentBudget?
    /// The caps, if any covers the campaign's class. Their slots are reserved in the same transaction.
    package var caps: CapRequest?
    /// The paces that all senders of the store share.
    package var paces: [SharedPace] = []
    /// The expiry. An expired delivery is not leased.
    package var expiry: Expiry?
    /// The quiet hours. A delivery is not leased in the quiet hours of its device.
    package var quiet: QuietTimes?
    /// The environments for which this sender has a credential. A delivery moves with its device to one of them, and is
    /// suppressed if the device has moved to another one.
    package var reachable = Set(PushEnvironment.allCases)
    /// Whether the run's waves start by the devices' own clocks.
    package var hasWaves = false
    /// What the push adds to the device's badge. The stored count changes once the push was accepted, see
    /// ``BadgeRule``.
    package var badgeIncrement: Int
    /// The number of the run's stages, which decide what may be leased, see ``StageController``; 0 if there are none.
    package var stages = 0
    package var hasStages: Bool { stages > 0 }
    /// The stage that decides which variant the rest gets; `nil` if every delivery keeps its own variant.
    package var decidingStage: Int?
    /// Whether a stage is judged by what people do with the pushes. Reports that wait are then recorded before the
    /// lease.
    package var goesByFeedback = false

    package init(
        run: Int64, environment: PushEnvironment, after: Int64 = 0, limit: Int, now: Timestamp, owner: String,
        fields: [AudienceField] = [], silentBudget: Configuration.SilentBudget? = nil, expiry: Expiry? = nil,
        quiet: QuietTimes? = nil, badgeIncrement: Int = 0
    ) {
        self.run = run
        self.environment = environment
        self.after = after
        self.limit = limit
        self.now = now
        self.owner = owner
        self.fields = fields
        self.silentBudget = silentBudget
        self.expiry = expiry
        self.quiet = quiet
        self.badgeIncrement = badgeIncrement
    }
}

/// Leased deliveries, which are in flight. If there are none, nothing can be sent now: more is due at `nextDue`, or
/// when the freeze continues.
package struct Lease: Hashable, Sendable {
    /// The id of the lease; 0 if there are no deliveries.
    package var id: Int64
    package var deliveries: [LeasedDelivery]
    /// The value of ``LeaseRequest/after`` for the next request.
    package var cursor: Int64
    /// The deliveries that will not be sent, by reason: gone, suspended, expired, quiet, or permanently over the silent
    /// budget or a frequency cap.
    package var suppressions: [SuppressionReason: Int]
    /// The number of deliveries that may be due elsewhere immediately. They moved to the other environment, where their
    /// devices have registered meanwhile, or to another device of a user whose device is gone.
    package var moved: Int
    /// When the next put-off delivery of this environment is due.
    package var nextDue: Timestamp?
    /// How far the store's clock, which gives the moments here, is ahead of the clock of ``LeaseRequest/now``. This is
    /// an upper bound, because the call takes some time. Zero in a store that uses the clocks of its callers.
    package var storeAhead: Duration
    /// How long the shared paces allow nothing; `nil` if they allowed these deliveries.
    package var paceWait: Duration?
    /// Whether the call ended before all due rows were read, see ``LeaseRound``. Lease again after the other runs had
    /// their turn.
    package var isCutShort = false
    /// Whether a stage has paused the run, now or before.
    package var isPaused = false
    /// The stop in force that forbids every lease of the run; `nil` if there is none.
    package var stop: StopOrder?

    package var suppressed: Int { suppressions.values.reduce(0, +) }

    package init(
        id: Int64, deliveries: [LeasedDelivery], cursor: Int64, suppressions: [SuppressionReason: Int] = [:],
        nextDue: Timestamp? = nil, storeAhead: Duration = .zero, paceWait: Duration? = nil, moved: Int = 0
    ) {
        self.moved = moved
        self.storeAhead = storeAhead
        self.paceWait = paceWait
        self.id = id
        self.deliveries = deliveries
        self.cursor = cursor
        self.suppressions = suppressions
        self.nextDue = nextDue
    }

    /// Creates an empty lease of a run that a stage has paused.
    package init(pausedAfter cursor: Int64) {
        self.init(id: 0, deliveries: [], cursor: cursor)
        isPaused = true
    }

    /// Creates an empty lease of a run that a stop in force covers.
    package init(stoppedBy order: StopOrder, after cursor: Int64) {
        self.init(id: 0, deliveries: [], cursor: cursor)
        stop = order
    }
}

package struct LeasedDelivery: Hashable, Sendable {
    package var device: Int64
    /// The generation of the token to send to, which may be newer than at the freeze.
    package var generation: Int
    /// The number of this lease among those of the delivery, from 1. An outcome counts only for the lease in which it
    /// was decided.
    package var leaseNumber: Int
    /// The number that the delivery's next request will have, from 1.
    package var attempt: Int
    /// The number of earlier attempts that count against no limit.
    package var excused: Int
    package var token: [UInt8]
    package var locale: String?
    /// In the order of the request's fields.
    package var fields: [String?]
    /// The badge, with the increment if one was requested.
    package var badge: Int
    /// Whether APNs accepted this very token before.
    package var isProven: Bool
    /// Index into the campaign's variants, which gives the template; `nil` without variants.
    package var variant: Int?
    /// When its wave started; `nil` in a run without waves.
    package var wave: Timestamp?
    /// Index into the campaign's stages; `nil` for the last one, and without stages.
    package var stage: Int?
    /// The time from which no request may start, because the push expires or its quiet hours begin; `nil` if there is
    /// no such time.
    package var startBefore: Timestamp?

    package init(
        device: Int64, generation: Int, leaseNumber: Int, attempt: Int, excused: Int, token: [UInt8], locale: String?,
        fields: [String?], badge: Int, isProven: Bool, variant: Int? = nil, wave: Timestamp? = nil,
        stage: Int? = nil, startBefore: Timestamp? = nil
    ) {
        self.device = device
        self.generation = generation
        self.leaseNumber = leaseNumber
        self.attempt = attempt
        self.excused = excused
        self.token = token
        self.locale = locale
        self.fields = fields
        self.badge = badge
        self.isProven = isProven
        self.variant = variant
        self.wave = wave
        self.stage = stage
        self.startBefore = startBefore
    }
}

/// A lease of a dead sender or of another sender, with its deliveries that are still in flight.
package struct AbandonedLease: Hashable, Sendable {
    /// A delivery of the lease that has no outcome.
    package struct Delivery: Hashable, Sendable {
        package var device: Int64
        package var generation: Int
        package var leaseNumber: Int
        /// The number of the request, from 1, if the request was started.
        package var attempt: Int
        package var excused: Int
        package var wave: Timestamp?
        package var stage: Int?

        package init(
            device: Int64, generation: Int, leaseNumber: Int, attempt: Int, excused: Int, wave: Timestamp?,
            stage: Int? = nil
        ) {
            self.device = device
            self.generation = generation
            self.leaseNumber = leaseNumber
            self.attempt = attempt
            self.excused = excused
            self.wave = wave
            self.stage = stage
        }
    }

    package var id: Int64
    /// The sender that took the lease.
    package var owner: String
    package var leasedAt: Timestamp
    package var environment: PushEnvironment
    package var deliveries: [Delivery]

    package init(
        id: Int64, owner: String, leasedAt: Timestamp, environment: PushEnvironment, deliveries: [Delivery]
    ) {
        self.id = id
        self.owner = owner
        self.leasedAt = leasedAt
        self.environment = environment
        self.deliveries = deliveries
    }
}

extension Settlement {
    /// Returns the settlement of a leased delivery whose request was, as far as is known, never started. The delivery
    /// is then pending as if it had not been leased.
    package static func released(_ delivery: AbandonedLease.Delivery, of lease: AbandonedLease) -> Settlement {
        Settlement(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt - 1,
            verdict: .retry(notBefore: lease.leasedAt), isRequest: false, mayHaveReachedAPNs: false)
    }

    /// Returns the settlement of a delivery whose outcome is unknown and that is not retried.
    package static func lost(_ delivery: AbandonedLease.Delivery, of lease: AbandonedLease) -> Settlement {
        Settlement(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, verdict: .unknown, isInDoubt: true,
            reason: interrupted, stage: delivery.stage)
    }
}
