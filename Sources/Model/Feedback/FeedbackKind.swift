/// What an app reports about a push, or about a person's use of the app.
///
/// The raw value is the code in the store and never changes.
package enum FeedbackKind: Int64, Hashable, Sendable, CaseIterable {
    /// The push arrived on the device. Reported by the app's notification service extension.
    case arrived = 1
    /// A person opened the app by tapping the notification.
    case opened = 2
    /// A person tapped a button of the notification. The event's name is the button.
    case action = 3
    /// A person dismissed the notification.
    case dismissed = 4
    /// A person did what the campaign is for. The event has a name, such as `played_episode`, and may have a value.
    case converted = 5
    /// A person allowed or switched off alerts.
    case alertsOn = 6
    case alertsOff = 7
    /// A person started the app, in any way.
    case appStarted = 8

    /// The name in requests and reports.
    package var name: String {
        switch self {
        case .arrived: "arrived"
        case .opened: "opened"
        case .action: "action"
        case .dismissed: "dismissed"
        case .converted: "converted"
        case .alertsOn: "alerts_on"
        case .alertsOff: "alerts_off"
        case .appStarted: "app_started"
        }
    }

    package init?(name: some StringProtocol) {
        guard let kind = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = kind
    }

    /// Whether an event of this kind is about one push, so that it needs the push's reference.
    package var isAboutPush: Bool {
        switch self {
        case .arrived, .opened, .action, .dismissed: true
        case .converted, .alertsOn, .alertsOff, .appStarted: false
        }
    }

    /// The kinds that show at which time of day a person uses the app.
    package static let opens: [FeedbackKind] = [.opened, .action, .appStarted]

    /// Whether an event of this kind has a name.
    package var isNamed: Bool { self == .action || self == .converted }
}

/// What a campaign asks the app to report. Every push then carries a reference, see ``PushReference``.
package struct CampaignFeedback: Hashable, Sendable, Codable {
    /// The percentage of the devices that report the arrival. `nil` for none. Opens are always reported.
    package var arrivalsPercent: Double?

    private enum CodingKeys: String, CodingKey {
        case arrivalsPercent = "arrivalsPercent"
    }

    /// The key in the payload under which the app finds the reference `r`, and `a` if it must report the arrival.
    package static let payloadKey = "fanfare"

    package init(arrivalsPercent: Double? = nil) { self.arrivalsPercent = arrivalsPercent }

}

extension PushType {
    /// Whether an app can report what became of pushes of this type.
    package var canHaveFeedback: Bool { self == .alert || self == .background }
}

/// The devices that report the arrival of a run's push. The choice is a hash of device and run, so that every sender
/// and every attempt makes the same choice, and different runs ask different devices.
package struct ArrivalSample: Hashable, Sendable {
    private let seed: Int64
    /// Devices with a bucket below this number report.
    private let below: Double

    package init(_ feedback: CampaignFeedback, run: Int64) {
        seed = CampaignSplit.seed("arrivals:\(run)")
        below = (feedback.arrivalsPercent ?? 0) * 100
    }

    package func contains(_ device: Int64) -> Bool {
        below > 0 && Double(CampaignSplit.bucket(of: device, seed: seed)) < below
    }
}

/// What a campaign is for: an event of the app within a time after the push.
package struct Conversion: Hashable, Sendable, Codable {
    /// The name of the event, such as `played_episode`.
    package var event: String
    package var within: Duration

    private enum CodingKeys: String, CodingKey {
        case event = "event", within = "within"
    }

    package init(event: String, within: Duration) {
        self.event = event
        self.within = within
    }

    package static let withinDefault: Duration = .seconds(86_400)
}
