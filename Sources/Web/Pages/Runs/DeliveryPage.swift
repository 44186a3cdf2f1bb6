import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The deliveries of a run, filtered by state and reason.
struct DeliveryPage: Sendable {
    struct Row: Sendable {
        var device: Int64
        /// The device's installation id, or the end of its token. `nil` if the device is gone.
        var name: String?
        var token: String?
        var environment: String
        var locale: String?
        var state: String
        var reason: String
        /// The reason in words. `nil` if there is none.
        var summary: String?
        var attempts: Int
        var settledAt: PageHTML?
    }

    var run: Int64
    var campaign: String
    var occurrence: String
    var state: String?
    var reason: String?
    /// The reason in words.
    var summary: String?
    var rows: [Row]
    var isEmpty: Bool
    var isFiltered: Bool
    /// The address of the same deliveries as CSV.
    var tableAddress: String
    /// The address of the next page. `nil` if this is the last one.
    var next: String?

    init(_ run: Run, _ filter: DeliveryFilter, _ page: DeliveryPageResult) {
        let (state, reason) = (filter.standing, filter.reason)
        self.run = run.id
        campaign = run.campaign
        occurrence = run.occurrence
        self.state = state?.rawValue
        self.reason = reason
        summary = reason.map { ReasonSummary(code: $0).summary }
        rows = page.deliveries.map(Row.init)
        isEmpty = rows.isEmpty && page.next == nil
        let chosen = [("state", state?.rawValue), ("reason", reason)].compactMap { name, value in
            value.map { (name: name, value: $0) }
        }
        next = page.next.map { "/runs/\(run.id)/deliveries?" + PageRequest.query(chosen + [("cursor", $0)]) }
        isFiltered = !chosen.isEmpty
        tableAddress = "/runs/\(run.id)/deliveries.csv" + (isFiltered ? "?" + PageRequest.query(chosen) : "")
    }
}

extension DeliveryPage.Row {
    fileprivate init(_ delivery: DeliveryResult) {
        let status = delivery.status.map { "\($0)" }
        let reason = [status, delivery.reason].compactMap(\.self).joined(separator: " ")
        let isUnsure = delivery.doubts > 0 && ["rejected", "suppressed"].contains(delivery.state)
        self.init(
            device: delivery.device, name: delivery.installationId ?? delivery.token, token: delivery.token,
            environment: delivery.environment, locale: delivery.locale, state: delivery.state,
            reason: isUnsure ? "\(reason); may have arrived" : reason,
            summary: delivery.reason.map { ReasonSummary(code: $0).summary }, attempts: delivery.attempts,
            settledAt: (delivery.settledAt ?? delivery.notBefore).map(PageHTML.init(time:)))
    }
}
