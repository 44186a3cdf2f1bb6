package import Model

/// The account of a run beside what its rows say.
package struct SumCheck: Hashable, Sendable {
    package var stored: DeliveryCounts
    package var recounted: DeliveryCounts
    /// One sentence each; empty when the sums close and agree.
    package var problems: [String]

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
    /// The device's, as it is now.
    package var locale: String?
    package var state: DeliveryState
    package var status: Int
    package var reason: String?
    /// Requests made.
    package var attempts: Int
    /// Nil while pending.
    package var settledAt: Timestamp?
    package var generation: Int
    /// Index into the campaign's variants; nil without variants and for the holdout.
    package var variant: Int?
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
    /// Requests whose answer was lost.
    package var doubts: Int
    /// Why it was last put off on purpose before a request, and until when; nil if it never was.
    package var heldFor: SuppressionReason?
    package var heldUntil: Timestamp?
}

/// The silent ledger against its own rule.
package struct LedgerCheck: Hashable, Sendable {
    package var devices: Int
    package var pushes: Int
    /// Pushes reserved while the window might already have been full. Always 0.
    package var violations: Int
}
