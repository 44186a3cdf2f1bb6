package import Model

/// What to take for sending.
package struct LeaseRequest: Sendable {
    package var run: Int64
    package var environment: PushEnvironment
    /// The cursor of the lease before, to look at less; 0 at the start and after a recovery.
    package var after: Int64
    /// Deliveries at most.
    package var limit: Int
    package var now: Timestamp
    /// All clocks at ``now``; for pushes with a budget or caps and for stages with a hold, which must not open because
    /// somebody sets one, for ``paces``, and for what ``goesByWallClock``.
    package var clocks: ClockReading?
    package var owner: String
    /// What the template prints of the device.
    package var fields: [AudienceField]
    /// Given for background pushes: reserved in the same transaction.
    package var silentBudget: Configuration.SilentBudget?
    /// Given where frequency caps name the campaign's class: reserved in the same transaction.
    package var caps: CapRequest?
    /// Kept together with all other senders of the store.
    package var paces: [SharedPace] = []
    /// What has expired is not leased any more.
    package var expiry: Expiry?
    /// Nobody is leased in their quiet hours.
    package var quiet: QuietTimes?
    /// The environments that this sender has a credential for: a delivery goes with its device to one of them, and is
    /// suppressed where the device has gone to another.
    package var reachable = Set(PushEnvironment.allCases)
    /// Its waves start by the devices' own clocks.
    package var hasWaves = false
    /// What the push adds to the device's badge. The stored count changes once the push was accepted, see
    /// ``BadgeRule``.
    package var badgeIncrement: Int
    /// How many stages the run has, which say what may be leased: see ``StageGate``; 0: none.
    package var stages = 0
    package var hasStages: Bool { stages > 0 }

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

/// Deliveries in flight. Without any, nothing can be sent now: there is more at `nextDue`, or when freezing goes on.
package struct Lease: Hashable, Sendable {
    /// 0 when there are no deliveries.
    package var id: Int64
    package var deliveries: [LeasedDelivery]
    /// To be given as `after` next time.
    package var cursor: Int64
    /// Deliveries found not to be sent any more: gone, suspended, expired, quiet, or over the silent budget or a frequency cap for good.
    package var suppressions: [SuppressionReason: Int]
    /// Deliveries that may be due elsewhere at once: given to the other environment, where their devices have registered
    /// meanwhile, or to another device of a user whose device is gone.
    package var moved: Int
    /// When the next of those put off is due, in this environment.
    package var nextDue: Timestamp?
    /// How far the store's clock, which the moments here are of, is ahead of the one of ``LeaseRequest/now``; at most, since the
    /// call takes some time. Zero in a store that goes by its callers' clocks.
    package var storeAhead: Duration
    /// How long the paces shared with others allow nothing; nil: they allowed what is here.
    package var paceWait: Duration?
    /// The call ended before all due rows were looked at, see ``LeaseTurn``: ask again after the other runs had their turn.
    package var isCutShort = false
    /// A stage has just paused the run, or one had before.
    package var isPaused = false
    /// Nothing may be leased of the run while this is in force.
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

    /// None, since a stage has paused the run.
    package init(pausedAfter cursor: Int64) {
        self.init(id: 0, deliveries: [], cursor: cursor)
        isPaused = true
    }

    /// None, since the run, or more, is stopped.
    package init(stoppedBy order: StopOrder, after cursor: Int64) {
        self.init(id: 0, deliveries: [], cursor: cursor)
        stop = order
    }
}

package struct LeasedDelivery: Hashable, Sendable {
    package var device: Int64
    /// Of the token to send to, which may be newer than the one frozen.
    package var generation: Int
    /// Which of its leases this is, from 1: an outcome counts for the lease it was decided in, and for no other.
    package var leaseNumber: Int
    /// Which request this will be, from 1, if it is started.
    package var attempt: Int
    /// Attempts before this one that count against no limit.
    package var excused: Int
    package var token: [UInt8]
    package var locale: String?
    /// In the order of the request's fields.
    package var fields: [String?]
    /// With the increment, if one was asked for.
    package var badge: Int
    /// APNs accepted this very token before.
    package var isProven: Bool
    /// Index into the campaign's variants, of the template it gets; nil without variants.
    package var variant: Int?
    /// When its wave started; nil in a run without waves.
    package var wave: Timestamp?
    /// Index into the campaign's stages; nil for the last one, and without stages.
    package var stage: Int?
    /// No request may start from then on: it expires, or its quiet hours begin. Nil: whenever.
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

/// A lease whose owner is gone, or is somebody else: what it left in flight.
package struct LeftLease: Hashable, Sendable {
    /// A delivery of it that has no outcome.
    package struct Delivery: Hashable, Sendable {
        package var device: Int64
        package var generation: Int
        package var leaseNumber: Int
        /// Which request it was, from 1, if it was started.
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
    /// The sender that took it.
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
    /// Of a delivery that was leased and, for all that is known, never started: as if it had not been leased.
    package static func givenBack(_ delivery: LeftLease.Delivery, of lease: LeftLease) -> Settlement {
        Settlement(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt - 1,
            verdict: .retry(notBefore: lease.leasedAt), isRequest: false, mayHaveReachedAPNs: false)
    }

    /// Of one that nobody knows the outcome of, and nothing more is done about.
    package static func lost(_ delivery: LeftLease.Delivery, of lease: LeftLease) -> Settlement {
        Settlement(
            lease: lease.id, device: delivery.device, generation: delivery.generation,
            leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, verdict: .unknown, isInDoubt: true,
            reason: interrupted, stage: delivery.stage)
    }
}
