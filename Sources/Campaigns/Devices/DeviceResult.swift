import Model
package import Store

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

/// The devices a person means.
package enum DeviceLookup {
    /// Those it may mean, at least one; an old token finds the device that had it.
    package static func devices(_ text: String, in store: any DeviceRegistry) async throws -> [StoredDevice] {
        let found = try await store.devices(matching: text)
        if !found.isEmpty { return found }
        if let token = DeviceToken(hex: text), let former = try await store.device(thatHad: token) { return [former] }
        throw Failure(
            .notFound,
            "no device \"\(shown(text))\" in the store; give an installation id, a user id, or the last 8 characters of "
                + "a token")
    }

    private static func shown(_ text: String) -> String {
        text.count > 16 ? "…" + text.suffix(8) : text
    }

    /// The one of a topic.
    ///
    /// - Parameters:
    ///   - text: an installation id, a user id, a token or its last 8 characters.
    ///   - topic: as devices are registered under it.
    package static func device(_ text: String, topic: String, in store: any DeviceRegistry) async throws -> StoredDevice
    {
        let shown = shown(text)
        let found = try await devices(text, in: store)
        let fitting = found.filter { $0.record.topic == topic }
        guard let device = fitting.first else {
            throw Failure(
                .notFound,
                "device \"\(shown)\" is registered for \(found[0].record.topic), the campaign is for \(topic)")
        }
        guard fitting.count == 1 else {
            throw Failure(
                .notFound,
                "\"\(shown)\" is \(fitting.count) devices, name one of them: "
                    + fitting.map { $0.record.installationID ?? $0.record.token.redacted }.joined(separator: ", "))
        }
        return device
    }
}
