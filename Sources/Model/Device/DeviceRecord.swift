/// One line of a device import: an installation as the app's backend knows it.
package struct DeviceRecord: Hashable, Sendable {
    package var token: DeviceToken
    package var environment: PushEnvironment
    package var topic: String
    package var installationID: String?
    package var userID: String?
    package var locale: String?
    package var timeZone: String?
    package var country: String?
    package var appVersion: String?
    package var osVersion: String?
    package var model: String?
    /// Nil: not known, treated as allowed.
    package var alertsAllowed: Bool?
    package var registeredAt: Timestamp?
    package var lastSeenAt: Timestamp?
    /// Nil: leave the stored tags as they are; empty: remove them.
    package var tags: [String]?
    /// Nil: leave the stored attributes as they are.
    package var attributes: [String: String]?

    package init(token: DeviceToken, environment: PushEnvironment, topic: String) {
        self.token = token
        self.environment = environment
        self.topic = topic
    }
}
