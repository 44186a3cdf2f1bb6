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
}

package struct DeviceCount: Hashable, Sendable {
    package var topic: String
    package var environment: PushEnvironment
    package var status: DeviceStatus
    package var count: Int
}
