package import Model

/// The meaning of APNs' rejection reasons for the device's token (`ProviderProtocol` sections 7 and 8). It includes
/// the test of whether a verdict still holds when it is recorded. Each listed reason leads to one verdict. All other
/// reasons say nothing about the token.
package enum TokenVerdict: Hashable, Sendable {
    /// The token is no longer active: status 410.
    case gone
    /// The token is of another environment or topic than the push was sent to. With the wrong host or topic, every
    /// token gets these responses. So the device is suspended only after the run has proven healthy.
    case mismatched

    /// The reasons that APNs gives, in the order of its documentation.
    package var reasons: [String] {
        switch self {
        case .gone: ["Unregistered", "ExpiredToken"]
        case .mismatched: ["BadDeviceToken", "DeviceTokenNotForTopic"]
        }
    }

    /// Returns `nil` if the reason says nothing about the token.
    package init?(reason: String) {
        if Self.mismatched.reasons.contains(reason) {
            self = .mismatched
        } else if Self.gone.reasons.contains(reason) {
            self = .gone
        } else {
            return nil
        }
    }

    /// Returns whether a verdict on the token of one generation still holds for a device. It holds while the device has
    /// this token and was not registered again after the verdict's moment.
    package static func holds(generation sent: Int, at moment: Timestamp, for device: TokenRegistration) -> Bool {
        sent == device.generation && device.latest.map { $0 <= moment } ?? true
    }
}

/// The known facts about the registration of a device's present token.
package struct TokenRegistration: Hashable, Sendable {
    package var generation: Int
    /// The registration time from the app.
    package var registeredAt: Timestamp?
    /// When an import last named this token without saying when it was registered.
    package var heardAt: Timestamp?
    package var lastSeenAt: Timestamp?

    package init(
        generation: Int, registeredAt: Timestamp? = nil, heardAt: Timestamp? = nil, lastSeenAt: Timestamp? = nil
    ) {
        self.generation = generation
        self.registeredAt = registeredAt
        self.heardAt = heardAt
        self.lastSeenAt = lastSeenAt
    }

    /// The moment that counts as the last registration: the app's time, otherwise the last import that named the
    /// token. Older versions did not record that import: for their devices, it is the moment when the device was last
    /// seen. `nil` if no time is known, so that every verdict holds.
    package var latest: Timestamp? { registeredAt ?? heardAt ?? lastSeenAt }
}
