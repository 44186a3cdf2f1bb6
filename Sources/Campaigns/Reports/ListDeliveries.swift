package import Model
package import Store

/// Pages through the deliveries of a run, by what became of them.
package struct ListDeliveries: Sendable {
    package static let limitMax = 1000

    private let store: any OutcomeReader

    package init(store: any OutcomeReader) {
        self.store = store
    }

    /// A page may have fewer than `limit`, or none, and still be followed by others. Throws
    /// ``StoreError/outcomesPruned(run:at:)`` when only their summary is left.
    ///
    /// - Parameter cursor: of the page before; nil for the first.
    package func page(of run: Run, _ filter: DeliveryFilter, cursor: String?, limit: Int) async throws
        -> DeliveryPageResult
    {
        let page = try await store.deliveries(
            of: run.id, filter, after: try PageCursor.position(cursor) ?? 0,
            limit: PageCursor.limit(limit, max: Self.limitMax))
        return DeliveryPageResult(
            run: run.id, deliveries: page.entries.map { DeliveryResult($0, of: run) },
            next: page.next.map(PageCursor.text))
    }
}

/// The stable shape of a page of deliveries, in order of device.
package struct DeliveryPageResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var deliveries: [DeliveryResult]
    /// Absent: this was the last page.
    package var next: String?

    package init(run: Int64, deliveries: [DeliveryResult], next: String?) {
        self.run = run
        self.deliveries = deliveries
        self.next = next
    }
}

/// The stable shape of one delivery.
package struct DeliveryResult: Codable, Hashable, Sendable {
    package var device: Int64
    /// Absent with the others of the device when it is no longer stored.
    package var installationId: String?
    /// The last 8 characters of the token it has now.
    package var token: String?
    package var environment: String
    package var locale: String?
    /// The locale of the text that was rendered; absent where nothing is localized, or before it was rendered.
    package var textLocale: String?
    /// The device's, as it was when the audience was frozen; absent: not known.
    package var appVersion: String?
    /// `pending`, `leased`, `accepted`, `rejected`, `unknown` or `suppressed`.
    package var state: String
    /// The HTTP status; absent where there was no answer.
    package var status: Int?
    package var reason: String?
    package var attempts: Int
    package var variant: String?
    /// ISO 8601, UTC; absent while it is pending or leased.
    package var settledAt: String?
    /// Of one that waits.
    package var notBefore: String?
    /// Attempts whose answer was lost: APNs may have accepted each of them, whatever the state is.
    package var doubts: Int

    package init(_ entry: DeliveryPage.Entry, of run: Run) {
        let outcome = entry.outcome
        device = outcome.device
        installationId = outcome.installationID
        token = outcome.tokenEnd
        environment = outcome.environment.rawValue
        locale = outcome.locale
        appVersion = outcome.appVersion
        let locales = run.definition.template(ofVariant: outcome.variant).locales
        textLocale = outcome.localeIndex.flatMap { locales.indices.contains($0) ? locales[$0].description : nil }
        state = entry.isLeased ? DeliveryStanding.leased.rawValue : outcome.state.name
        status = outcome.status > 0 ? outcome.status : nil
        reason = outcome.reason
        attempts = outcome.attempts
        let variants = run.definition.campaign.variants
        variant = outcome.variant.flatMap { variants.indices.contains($0) ? variants[$0].name : nil }
        settledAt = outcome.settledAt?.iso8601
        notBefore = entry.notBefore?.iso8601
        doubts = outcome.doubts
    }
}
