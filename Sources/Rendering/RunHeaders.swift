package import Model
import Platform

/// The headers shared by every push of a run (`ProviderProtocol` section 4).
package struct RunHeaders: Hashable, Sendable {
    package let topic: String
    package let pushType: String
    package let priority: Int
    /// In seconds. `nil` omits the header.
    package let expiration: Int64?
    package let collapseID: String?

    package init(_ run: Run) {
        let campaign = run.definition.campaign
        topic = campaign.topic + campaign.pushType.topicSuffix
        pushType = campaign.pushType.rawValue
        priority = campaign.priority.rawValue
        expiration = run.definition.expiry.headerSeconds(wave: nil)
        collapseID =
            switch campaign.collapse {
            case .none, .template: nil
            case .key(let key): key
            case .run: "\(campaign.name.utf8.count <= 40 ? campaign.name : "run")-\(run.id)"
            }
    }
}

/// The `apns-id` of a delivery, for callers without a transport.
package enum DeliveryID {
    /// - Parameter namespace: the store's namespace.
    package static func text(namespace: (high: UInt64, low: UInt64), run: Int64, device: Int64, generation: Int)
        -> String
    {
        PushIDSpace(namespace: PushID(high: namespace.high, low: namespace.low))
            .id(run: run, device: device, generation: generation).description
    }
}
