package import Model
package import Store

/// A pending delivery that may be leased, with its device's current data.
package struct LeaseCandidate {
    /// `nil` if the device no longer exists.
    package var status: DeviceStatus?
    /// The current environment of the device's token.
    package var environment: PushEnvironment?
    /// Whether the delivery was put off before, and is therefore in the index of waiting deliveries.
    package var isWaiting: Bool
    /// The device's time zone. It is read only if quiet hours need it.
    package var zone: String?
    /// The device's user. It is read only if frequency caps need it.
    package var user: String?
    package var delivery: LeasedDelivery

    package init(
        status: DeviceStatus?, environment: PushEnvironment?, isWaiting: Bool, zone: String?, user: String?,
        delivery: LeasedDelivery
    ) {
        self.status = status
        self.environment = environment
        self.isWaiting = isWaiting
        self.zone = zone
        self.user = user
        self.delivery = delivery
    }
}
