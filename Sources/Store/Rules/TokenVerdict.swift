package import Model

/// What APNs' reasons for refusing a push say about the device's token, and whether that still holds when it is
/// recorded (`ProviderProtocol` sections 7 and 8). A reason stands for one verdict; every other says nothing about the
/// token.
package enum TokenVerdict: Hashable, Sendable {
    /// The token is no longer active: status 410.
    case gone
    /// The token is of another environment or topic than the push was sent to. With the wrong host or topic every token
    /// draws these answers, so the device is suspended only once the run has proven healthy.
    case mismatched

    /// APNs' words, in the order they are documented in.
    package var reasons: [String] {
        switch self {
        case .gone: ["Unregistered", "ExpiredToken"]
        case .mismatched: ["BadDeviceToken", "DeviceTokenNotForTopic"]
        }
    }

    /// Nil: the reason says nothing about the token.
    package init?(reason: String) {
        if Self.mismatched.reasons.contains(reason) {
            self = .mismatched
        } else if Self.gone.reasons.contains(reason) {
            self = .gone
        } else {
            return nil
        }
    }

    /// A verdict on the token of one generation, given about one moment, holds for a device while that is still its
    /// token and it was not registered again after that moment.
    package static func holds(generation sent: Int, at moment: Timestamp, for device: TokenRegistration) -> Bool {
        sent == device.generation && device.latest.map { $0 <= moment } ?? true
    }
}

/// What is known of the registration of a device's present token.
package struct TokenRegistration: Hashable, Sendable {
    package var generation: Int
    /// As the app says.
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

    /// The moment that counts as the last registration: the app's word, else when we last heard of it. Devices stored
    /// before that was kept have at most the moment they were last seen. Nil: nothing speaks against a verdict.
    package var latest: Timestamp? { registeredAt ?? heardAt ?? lastSeenAt }
}
