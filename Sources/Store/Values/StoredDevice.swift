package import Model

/// A device as the store knows it: its registration and its status.
package struct StoredDevice: Hashable, Sendable {
    package var id: Int64
    /// Token, profile, badge, tags and attributes, in a form that can be imported again.
    package var record: DeviceRecord
    /// The number of the token, from 1. Each new token adds one.
    package var generation: Int
    package var status: DeviceStatus
    /// APNs' reason for a status other than active.
    package var statusReason: String?
    package var statusAt: Timestamp?
    /// Whether APNs accepted this token before.
    package var isProven: Bool

    package init(
        id: Int64, record: DeviceRecord, generation: Int, status: DeviceStatus, statusReason: String?,
        statusAt: Timestamp?, badge: Int, isProven: Bool
    ) {
        self.id = id
        self.record = record
        self.record.badge = badge
        self.generation = generation
        self.status = status
        self.statusReason = statusReason
        self.statusAt = statusAt
        self.isProven = isProven
    }

    package var badge: Int { record.badge ?? 0 }
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
    /// In the requested order, as a template prints them.
    package var fields: [String?]

    package init(device: Int64, locale: String?, fields: [String?]) {
        self.device = device
        self.locale = locale
        self.fields = fields
    }
}

/// The result of one record.
package struct RegisteredDevice: Hashable, Sendable {
    package enum Effect: String, Hashable, Sendable, CaseIterable {
        case inserted, updated, unchanged, merged
        case tokenReplaced = "token_replaced"
    }

    package var effect: Effect
    /// `nil` if it was not requested. The device is that of another installation if the token has moved there since the
    /// record was made.
    package var device: StoredDevice?

    package init(effect: Effect, device: StoredDevice?) {
        self.effect = effect
        self.device = device
    }
}

/// The results of an import; every record is counted once.
package struct ImportCounts: Hashable, Sendable {
    package var inserted = 0
    /// Known devices with something changed, but with the same token.
    package var updated = 0
    /// Known installations with a new token.
    package var tokensReplaced = 0
    /// Known installations that reported the token of another stored device, which was merged into them.
    package var merged = 0
    /// Known devices with nothing new.
    package var unchanged = 0

    package init() {}

    package mutating func add(_ effect: RegisteredDevice.Effect) {
        switch effect {
        case .inserted: inserted += 1
        case .updated: updated += 1
        case .tokenReplaced: tokensReplaced += 1
        case .merged: merged += 1
        case .unchanged: unchanged += 1
        }
    }

    package mutating func add(_ other: ImportCounts) {
        inserted += other.inserted
        updated += other.updated
        tokensReplaced += other.tokensReplaced
        merged += other.merged
        unchanged += other.unchanged
    }

    package var sum: Int { inserted + updated + tokensReplaced + merged + unchanged }

    package static func + (left: ImportCounts, right: ImportCounts) -> ImportCounts {
        var sum = left
        sum.inserted += right.inserted
        sum.updated += right.updated
        sum.tokensReplaced += right.tokensReplaced
        sum.merged += right.merged
        sum.unchanged += right.unchanged
        return sum
    }
}

/// The result of a prune, or of a dry run; every device counts once.
package struct PruneCounts: Hashable, Sendable {
    /// The number of devices that have been gone since before the given time.
    package var gone = 0
    /// The number of the others that were not seen since the given time.
    package var notSeen = 0
    /// The number of devices that would be pruned, but one of their pushes still counts for their silent budget or a
    /// frequency cap. A new registration would otherwise start with a fresh budget. They are left for the next prune.
    package var kept = 0

    package init() {}

    package var total: Int { gone + notSeen }
}

/// The rule that decides whether a text that names devices may also be the end of a token. A text that names one
/// device in full and is the end of another's token identifies neither. So no device gets a push that was meant for
/// another.
package enum TokenEnd {
    /// The maximum number of devices that are listed.
    package static let devicesMax = 20
    /// Shorter ends match too many devices.
    private static let charactersMin = 8
    /// People do not type a longer end, and each search for an end reads a whole table.
    private static let charactersMax = 16

    /// - Parameter exact: the number of devices that the text names in full.
    package static func isAsked(byCharacters count: Int, exact: Int) -> Bool {
        count >= charactersMin && (exact == 0 || count <= charactersMax)
    }

    /// Returns each device once, those named in full first.
    package static func joined(_ exact: [StoredDevice], _ ending: [StoredDevice]) -> [StoredDevice] {
        exact + ending.filter { device in !exact.contains { $0.id == device.id } }
    }
}
