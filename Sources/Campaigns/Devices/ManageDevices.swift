import CampaignFiles
package import Model
package import Store

/// Finds, exports and prunes devices.
package struct ManageDevices: Sendable {
    private let store: any DeviceRegistry & RunLog

    package init(store: any DeviceRegistry & RunLog) {
        self.store = store
    }

    /// Those a person may mean, at least one.
    package func find(_ text: String) async throws -> [StoredDevice] { try await DeviceLookup.devices(text, in: store) }

    /// How many there are, by topic, environment and status.
    package func counts() async throws -> [DeviceCountResult] {
        try await store.deviceCounts().map(DeviceCountResult.init)
    }

    /// Hands out the suspended ones in batches. Returns how many.
    package func suspended(batch: @escaping @Sendable ([StoredDevice]) throws -> Void) async throws -> Int {
        try await store.devices(withStatus: .suspended, batch: batch)
    }

    /// Hands out the devices as CSV that an import reads, whole tokens in it, the heading first. Returns how many.
    ///
    /// - Parameter expression: an audience expression; nil: all.
    package func export(
        matching expression: String?, topic: String?, to target: String?, by actor: Actor, now: Timestamp,
        batch: @escaping @Sendable (String) throws -> Void
    ) async throws -> Int {
        let audience = try expression.map { try ExpressionText.parse($0, named: "--matching") } ?? .everyone
        try batch(CSVLine.text(DeviceCSV.columns) + "\n")
        let count = try await store.exportDevices(topic: topic, matching: audience, now: now) { devices in
            try batch(devices.map { CSVLine.text(DeviceCSV.values(of: $0.record)) + "\n" }.joined())
        }
        try await store.recordEvent(
            kind: .devicesExported, run: nil, actor: actor,
            detail: "\(count) devices" + (target.map { " to \($0)" } ?? ""), now: now)
        return count
    }

    /// Deletes devices gone or not seen since before a moment; with `isDryRun` they are only counted.
    package func prune(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, isDryRun: Bool, by actor: Actor,
        now: Timestamp
    ) async throws -> PruneCounts {
        try await store.pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: topic, dryRun: isDryRun, now: now, by: actor)
    }
}

/// The stable shape of `devices prune --json`.
package struct PruneResult: Codable, Hashable, Sendable {
    package var deleted: Bool
    package var gone: Int
    package var notSeen: Int
    package var kept: Int

    package init(_ counts: PruneCounts, deleted: Bool) {
        self.deleted = deleted
        gone = counts.gone
        notSeen = counts.notSeen
        kept = counts.kept
    }
}

/// A device as a line of the CSV that `devices import` reads.
package enum DeviceCSV {
    package static let columns = [
        "token", "environment", "topic", "installation_id", "user_id", "locale", "time_zone", "country", "app_version",
        "os_version", "model", "alerts_allowed", "registered_at", "last_seen_at", "tags",
    ]

    package static func values(of record: DeviceRecord) -> [String] {
        [
            record.token.hex, record.environment.rawValue, record.topic, record.installationID ?? "",
            record.userID ?? "", record.locale ?? "", record.timeZone ?? "", record.country ?? "",
            record.appVersion ?? "", record.osVersion ?? "", record.model ?? "",
            record.alertsAllowed.map { $0 ? "true" : "false" } ?? "", record.registeredAt?.iso8601 ?? "",
            record.lastSeenAt?.iso8601 ?? "", (record.tags ?? []).joined(separator: ";"),
        ]
    }
}
