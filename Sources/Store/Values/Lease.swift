package import Model

/// What to take for sending.
package struct LeaseRequest: Sendable {
    package var run: Int64
    package var environment: PushEnvironment
    /// The cursor of the lease before, to look at less; 0 at the start and after ``DeliveryQueue/recover(_:now:)``.
    package var after: Int64
    /// Deliveries at most.
    package var limit: Int
    package var now: Timestamp
    /// All clocks at ``now``; for background pushes, whose budget must not open because somebody sets one.
    package var clocks: ClockReading?
    package var owner: String
    /// What the template prints of the device.
    package var fields: [AudienceField]
    /// Given for background pushes: reserved in the same transaction.
    package var silentBudget: Configuration.SilentBudget?
    /// What has expired is not leased any more.
    package var expiry: Expiry?
    /// Nobody is leased in their quiet hours.
    package var quiet: QuietTimes?
    /// Added to the device's badge at the first attempt; 0 leaves it alone.
    package var badgeIncrement: Int

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
    /// Deliveries found not to be sent any more: gone, suspended, expired, quiet or over the silent budget for good.
    package var suppressions: [SuppressionReason: Int]
    /// When the next of those put off is due, in this environment.
    package var nextDue: Timestamp?

    package var suppressed: Int { suppressions.values.reduce(0, +) }

    package init(
        id: Int64, deliveries: [LeasedDelivery], cursor: Int64, suppressions: [SuppressionReason: Int] = [:],
        nextDue: Timestamp? = nil
    ) {
        self.id = id
        self.deliveries = deliveries
        self.cursor = cursor
        self.suppressions = suppressions
        self.nextDue = nextDue
    }
}

package struct LeasedDelivery: Hashable, Sendable {
    package var device: Int64
    /// Of the token to send to, which may be newer than the one frozen.
    package var generation: Int
    /// From 1.
    package var attempt: Int
    /// Attempts before this one whose outcome nobody knows.
    package var doubts: Int
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

    package init(
        device: Int64, generation: Int, attempt: Int, doubts: Int, token: [UInt8], locale: String?, fields: [String?],
        badge: Int, isProven: Bool, variant: Int? = nil, wave: Timestamp? = nil
    ) {
        self.device = device
        self.generation = generation
        self.attempt = attempt
        self.doubts = doubts
        self.token = token
        self.locale = locale
        self.fields = fields
        self.badge = badge
        self.isProven = isProven
        self.variant = variant
        self.wave = wave
    }
}

/// How many deliveries of an environment APNs decided on, and how many of those it found ``TokenVerdict/mismatched``.
package struct MismatchCount: Hashable, Sendable {
    package var environment: PushEnvironment
    package var all: Int
    package var wrong: Int

    package init(environment: PushEnvironment, all: Int, wrong: Int) {
        self.environment = environment
        self.all = all
        self.wrong = wrong
    }
}
