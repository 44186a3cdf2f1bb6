package import Model

/// A device as the store knows it: what was registered, and what became of it.
package struct StoredDevice: Hashable, Sendable {
    package var id: Int64
    /// Token, profile, tags and attributes, ready to be imported again.
    package var record: DeviceRecord
    /// From 1, one more with every new token.
    package var generation: Int
    package var status: DeviceStatus
    /// APNs' reason for a status other than active.
    package var statusReason: String?
    package var statusAt: Timestamp?
    package var badge: Int
    /// Whether APNs accepted this token before.
    package var isProven: Bool

    package init(
        id: Int64, record: DeviceRecord, generation: Int, status: DeviceStatus, statusReason: String?,
        statusAt: Timestamp?, badge: Int, isProven: Bool
    ) {
        self.id = id
        self.record = record
        self.generation = generation
        self.status = status
        self.statusReason = statusReason
        self.statusAt = statusAt
        self.badge = badge
        self.isProven = isProven
    }
}

package struct DeviceCount: Hashable, Sendable {
    package var topic: String
    package var environment: PushEnvironment
    package var status: DeviceStatus
    package var count: Int

    package init(topic: String, environment: PushEnvironment, status: DeviceStatus, count: Int) {
        self.topic = topic
        self.environment = environment
        self.status = status
        self.count = count
    }
}

/// A device to render a sample for.
package struct DeviceSample: Hashable, Sendable {
    package var device: Int64
    package var locale: String?
    /// In the order asked for, as a template prints them.
    package var fields: [String?]

    package init(device: Int64, locale: String?, fields: [String?]) {
        self.device = device
        self.locale = locale
        self.fields = fields
    }
}
