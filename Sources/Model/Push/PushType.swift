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

    /// The suffix that `apns-topic` has after the bundle id.
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

    /// The allowed priorities, the default first.
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

    /// The default of `expires_after`: zero for pushes that are useless later, such as a call. `nil` leaves storage to
    /// APNs' policy.
    package var defaultExpiresAfter: Duration? {
        switch self {
        case .voip, .pushtotalk, .controls: .zero
        case .alert, .background, .location, .complication, .fileprovider, .mdm, .liveactivity, .widgets: nil
        }
    }

    /// Whether a certificate is not enough.
    package var needsProviderToken: Bool { self == .location || self == .fileprovider }

    /// Whether the user sees or hears the push. A device without permission for alerts is then left out.
    package var showsAlert: Bool { self == .alert }
}

/// The value of `apns-priority`. It also orders competing runs.
package enum PushPriority: Int, Hashable, Sendable, Codable, CaseIterable {
    /// 10: send immediately.
    case immediate = 10
    /// 5: consider the device's power.
    case considerate = 5
    /// 1: power first, never wake the device.
    case lowest = 1
}

extension String {
    /// Tells whether devices of this topic belong to an app: `com.example.app.voip` belongs to `com.example.app`,
    /// `com.example.app.kids` is another app.
    package func isTopic(of app: String) -> Bool { app.topics.contains(self) }

    /// The topics that devices of this app are registered under, one for each push type with separate tokens.
    package var topics: Set<String> { Set(PushType.allCases.map { self + $0.topicSuffix }) }
}
