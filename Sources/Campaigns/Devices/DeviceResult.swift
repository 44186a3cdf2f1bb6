package import Store
import Model

/// The stable shape of `devices show --json`.
package struct DeviceResult: Codable, Hashable, Sendable {
    package var device: Int64
    package var installationId: String?
    package var userId: String?
    package var topic: String
    package var environment: String
    package var token: String
    package var status: String
    package var statusReason: String?
    /// Since when it is suspended or gone.
    package var statusAt: String?
    package var locale: String?
    package var timeZone: String?
    package var country: String?
    package var appVersion: String?
    package var osVersion: String?
    package var model: String?
    package var alertsAllowed: Bool?
    package var registeredAt: String?
    package var lastSeenAt: String?
    package var tags: [String]

    package init(_ device: StoredDevice) {
        let record = device.record
        self.device = device.id
        installationId = record.installationID
        userId = record.userID
        topic = record.topic
        environment = record.environment.rawValue
        token = record.token.redacted
        status = device.status.rawValue
        statusReason = device.statusReason
        statusAt = device.statusAt?.iso8601
        locale = record.locale
        timeZone = record.timeZone
        country = record.country
        appVersion = record.appVersion
        osVersion = record.osVersion
        model = record.model
        alertsAllowed = record.alertsAllowed
        registeredAt = record.registeredAt?.iso8601
        lastSeenAt = record.lastSeenAt?.iso8601
        tags = record.tags ?? []
    }
}

/// How many devices there are of one kind: the stable shape of each entry of `devices show --json` without a device.
package struct DeviceCountResult: Codable, Hashable, Sendable {
    package var topic, environment, status: String
    package var count: Int

    package init(_ count: DeviceCount) {
        topic = count.topic
        environment = count.environment.rawValue
        status = count.status.rawValue
        self.count = count.count
    }
}
