/// The value of `apns-push-type`, with the rules Apple attaches to it (`ProviderProtocol` section 4).
package enum PushType: String, Hashable, Sendable, Codable, CaseIterable {
    case alert
    case background
    case location
    case voip
    case complication
    case fileprovider
    case mdm
    case liveactivity
    case pushtotalk
    case widgets
    case controls

    /// What `apns-topic` carries after the bundle id.
    package var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .location: ".location-query"
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// The largest payload in bytes after serialisation (`ProviderProtocol` section 5).
    package var payloadMaxBytes: Int { self == .voip ? 5120 : 4096 }

    /// The first one is the usual one.
    package var allowedPriorities: [PushPriority] {
        switch self {
        case .background: [.considerate]
        case .pushtotalk: [.immediate]
        case .location: [.immediate, .considerate]
        // Priority 10 counts against the hourly budget of Live Activities, 5 does not.
        case .liveactivity: [.considerate, .immediate]
        case .alert, .voip, .complication, .fileprovider, .mdm, .widgets, .controls: PushPriority.allCases
        }
    }

    package var defaultPriority: PushPriority { allowedPriorities[0] }

    /// What `expires_after` is when the campaign says nothing: a call that is over must not ring. Nil: APNs' own policy.
    package var defaultExpiresAfter: Duration? {
        switch self {
        case .voip, .pushtotalk, .controls: .zero
        case .alert, .background, .location, .complication, .fileprovider, .mdm, .liveactivity, .widgets: nil
        }
    }

    /// True where a certificate is not enough.
    package var needsProviderToken: Bool { self == .location || self == .fileprovider }

    /// True where the user sees or hears something, so that a device without permission is left out.
    package var showsAlert: Bool { self == .alert }
}

/// The value of `apns-priority`; it also orders competing runs.
package enum PushPriority: Int, Hashable, Sendable, Codable, CaseIterable {
    /// 10: now.
    case immediate = 10
    /// 5: with regard to the device's power.
    case considerate = 5
    /// 1: power first, never wakes the device.
    case lowest = 1
}

extension String {
    /// Tells whether devices of this topic belong to an app: `com.example.app.voip` belongs to `com.example.app`,
    /// `com.example.app.kids` is another app.
    package func isTopic(of app: String) -> Bool { app.topics.contains(self) }

    /// The topics that devices of this app are registered under, one for each push type with tokens of its own.
    package var topics: Set<String> { Set(PushType.allCases.map { self + $0.topicSuffix }) }
}
