package import Model
package import Store

/// Pages through the deliveries of a run, by outcome.
package struct ListDeliveries: Sendable {
    package static let limitMax = 1000

    private let store: any OutcomeReader

    package init(store: any OutcomeReader) {
        self.store = store
    }

    /// Returns one page. A page may have fewer than `limit` deliveries, or none, although more pages follow. Throws
    /// ``StoreError/outcomesPruned(run:at:)`` if only the run's summary is left.
    ///
    /// - Parameter cursor: the cursor of the previous page; `nil` for the first page.
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
    /// Absent on the last page.
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
    /// Absent if unknown, or if the device is no longer stored.
    package var installationId: String?
    /// The last 8 characters of the device's current token; absent if the device is no longer stored.
    package var token: String?
    package var environment: String
    package var locale: String?
    /// The locale of the rendered text. Absent if the text is not localized, or before it is rendered.
    package var textLocale: String?
    /// The app version of the device when the audience was frozen; absent if unknown.
    package var appVersion: String?
    /// `pending`, `leased`, `accepted`, `rejected`, `unknown` or `suppressed`.
    package var state: String
    /// The HTTP status; absent if there was no response.
    package var status: Int?
    package var reason: String?
    package var attempts: Int
    package var variant: String?
    /// ISO 8601, UTC; absent while the delivery is pending or leased.
    package var settledAt: String?
    /// The earliest time of the next attempt, if the delivery waits.
    package var notBefore: String?
    /// The number of attempts without a response: APNs may have accepted each of them, whatever the state is.
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
