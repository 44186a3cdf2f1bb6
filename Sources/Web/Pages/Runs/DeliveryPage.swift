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
        var attempts: Int
        var settledAt: String?
    }

    var run: Int64
    var campaign: String
    var occurrence: String
    var state: String?
    var reason: String?
    var rows: [Row]
    var isEmpty: Bool
    /// The address of the next page. `nil` if this is the last one.
    var next: String?

    init(_ run: Run, state: DeliveryStanding?, reason: String?, _ page: DeliveryPageResult) {
        self.run = run.id
        campaign = run.campaign
        occurrence = run.occurrence
        self.state = state?.rawValue
        self.reason = reason
        rows = page.deliveries.map(Row.init)
        isEmpty = rows.isEmpty && page.next == nil
        let query = [("state", state?.rawValue), ("reason", reason), ("cursor", page.next)].compactMap { name, value in
            value.map { "\(name)=\($0.inAddress)" }
        }
        next = page.next == nil ? nil : "/runs/\(run.id)/deliveries?" + query.joined(separator: "&")
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
            reason: isUnsure ? "\(reason); may have arrived" : reason, attempts: delivery.attempts,
            settledAt: (delivery.settledAt ?? delivery.notBefore).map(\.shownTimeAndZone))
    }
}
