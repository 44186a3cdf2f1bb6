import Campaigns
import Model

/// A reason of a delivery in words, with what it means for the operator. The pages show the code itself in small.
struct ReasonSummary: Hashable, Sendable {
    var summary: String
    /// The consequence, or what to do. `nil` if the words say all.
    var advice: String?

    private init(_ summary: String, _ advice: String? = nil) { (self.summary, self.advice) = (summary, advice) }

    /// - Parameter code: the reason as APNs or Fanfare names it, such as `Unregistered` or `token_gone`.
    init(code: String) {
        self = SuppressionReason(rawValue: code).map(Self.of) ?? Self.ofAPNs[code] ?? Self(code, nil)
    }

    private static func of(_ reason: SuppressionReason) -> ReasonSummary {
        switch reason {
        case .silentBudget:
            Self("The silent budget was used up", "Send fewer background pushes, or wait for the next window.")
        case .frequencyCap: Self("The device had enough notifications", "A frequency cap limits how many it gets.")
        case .coalesced: Self("A newer push replaced it")
        case .quietHours: Self("Quiet hours", "When they ended, the push would have been too late.")
        case .expired: Self("It expired before it could be sent")
        case .holdout: Self("The device is in the control group")
        case .alertsNotAllowed: Self("Notifications are turned off", "The person can turn them on in the settings.")
        case .wrongEnvironment:
            Self("The token belongs to the other environment", "Register the device with the environment of its build.")
        case .tokenGone: Self("The app was uninstalled", "Nothing is sent to these devices any more.")
        case .payloadTooLarge: Self("The payload is too large", "Shorten the text of this language.")
        case .cancelled: Self("The run was cancelled")
        case .late: Self("Its local time had passed when the run started")
        case .unknownZone: Self("The device’s time zone is unknown", "The app’s backend can register it.")
        case .duplicateOfUser: Self("Another device of the same user gets it")
        }
    }

    /// The reasons of APNs that operators see most.
    private static let ofAPNs = [
        "Unregistered": Self(
            "APNs says that the app was uninstalled",
            "Nothing is sent to these devices any more, except to those that have registered again since."),
        "ExpiredToken": Self(
            "The token has expired", "Nothing is sent to these devices until they register again."),
        "BadDeviceToken": Self(
            "APNs does not know the token",
            "It belongs to another environment, or is not a valid token. The devices were suspended."),
        "DeviceTokenNotForTopic": Self(
            "The token belongs to another app", "Check the topic that the app’s backend registers."),
        "PayloadTooLarge": Self("The payload is too large", "Shorten the text of this language."),
        "TooManyRequests": Self("Too many pushes to one device", "APNs limits them for each device."),
        "ServiceUnavailable": Self("APNs was unavailable"), "InternalServerError": Self("APNs had an internal error"),
        "ExpiredProviderToken": Self("APNs rejected the key’s token", "Check the clock of the server."),
        "InvalidProviderToken": Self("APNs rejected the key", "Check the key on the Health page."),
        "TopicDisallowed": Self("The key may not send to this app", "Check the key’s team and the app’s topic."),
    ]
}
