import CampaignFiles
package import Model
package import Store
import Synchronization

/// Finds, exports and prunes devices.
package struct ManageDevices: Sendable {
    private let store: any DeviceRegistry & AuditLog & FeedbackLog

    package init(store: any DeviceRegistry & AuditLog & FeedbackLog) {
        self.store = store
    }

    /// Returns the devices that a text may mean. Throws if there is none.
    package func find(_ text: String) async throws -> [StoredDevice] { try await DeviceLookup.devices(text, in: store) }

    /// Returns the devices that a text may mean as results, limited to the apps that the caller may see.
    package func found(_ text: String, sees: (_ topic: String) -> Bool) async throws -> [DeviceResult] {
        try await DeviceLookup.devices(text, in: store, sees: sees).map(DeviceResult.init)
    }

    /// Returns the topics that have or had a device.
    package func topics() async throws -> Set<String> { try await store.topics() }

    /// Returns the number of devices by topic, environment and status. Reads all devices; pages use
    /// ``CachedDeviceCounts``.
    package func counts() async throws -> [DeviceCountResult] {
        try await store.deviceCounts().map(DeviceCountResult.init)
    }

    /// Passes the suspended devices to `batch`, and returns their number.
    package func suspended(batch: @escaping @Sendable ([StoredDevice]) throws -> Void) async throws -> Int {
        try await store.devices(withStatus: .suspended, batch: batch)
    }

    /// Passes the devices to `batch` as CSV, the heading first, and returns their number. The CSV contains whole
    /// tokens, so that an import reads the devices back unchanged, except texts beyond the limits of an import. The
    /// export is on record before the first token leaves the store, also if it is not completed.
    ///
    /// - Parameters:
    ///   - expression: an audience expression; `nil` for all devices.
    ///   - target: the file; `nil` for standard output.
    package func export(
        matching expression: String?, topic: String?, to target: String?, by actor: Actor, now: Timestamp,
        batch: @escaping @Sendable (String) throws -> Void
    ) async throws -> DeviceExport {
        let audience = try expression.map { try ExpressionText.parse($0, named: "--matching") } ?? .everyone
        try await store.recordEvent(
            kind: .devicesExported, run: nil, actor: actor,
            detail: "begins" + (topic.map { ", devices of \($0)" } ?? "") + (target.map { ", to \($0)" } ?? ""),
            now: now)
        try batch(CSVLine.text(DeviceCSV.columns) + "\n")
        let beyondLimits = Mutex(0)
        let count = try await store.exportDevices(topic: topic, matching: audience, now: now) { devices in
            beyondLimits.withLock { $0 += devices.count(where: \.record.hasTextsBeyondLimits) }
            try batch(devices.map { CSVLine.text(DeviceCSV.values(of: $0.record)) + "\n" }.joined())
        }
        return DeviceExport(devices: count, beyondLimits: beyondLimits.withLock { $0 })
    }

    /// Records the number of devices of an export, once its file exists.
    package func recordExport(of count: Int, to target: String?, by actor: Actor, now: Timestamp) async throws {
        try await store.recordEvent(
            kind: .devicesExported, run: nil, actor: actor,
            detail: "\(count.counted("device"))" + (target.map { " to \($0)" } ?? ""), now: now)
    }

    /// Deletes one device on request. A device whose pushes still count keeps a row without personal data, so that a
    /// new registration does not reset its silent budget or its frequency caps.
    package func remove(_ device: Int64, by actor: Actor, now: Timestamp) async throws -> DeviceRemovalResult {
        // Reports that wait name the device, too. They go first, so that an error means that the device is still there.
        // A report that comes meanwhile is dropped when it is recorded.
        try await store.forgetWaitingFeedback(of: device)
        guard let removal = try await store.removeDevice(device, now: now, by: actor) else {
            throw StoreError.noSuchDevice(device)
        }
        return DeviceRemovalResult(device: device, deleted: removal == .deleted)
    }

    /// Deletes the device of a topic with this installation id.
    package func remove(
        installation: String, topic: String, by actor: Actor, now: Timestamp
    ) async throws -> DeviceRemovalResult {
        guard let found = try await store.device(installation: installation, topic: topic) else {
            throw Failure(
                .notFound, "no device of \(topic) with the installation \"\(Redaction.withoutTokens(installation))\"")
        }
        return try await remove(found.id, by: actor, now: now)
    }

    /// Deletes all devices that a text names in full: by their installation id, by the id of their user, or by their
    /// token. If it fails midway, the same call continues. Throws if there is no such device.
    ///
    /// - Parameters:
    ///   - keys: what the text may be.
    ///   - confirm: called once with the first devices, before any is deleted.
    package func remove(
        named text: String, as keys: [DeviceKey] = DeviceKey.allCases, by actor: Actor, now: Timestamp,
        sees: (_ topic: String) -> Bool, confirm: ([StoredDevice]) throws -> Void = { _ in }
    ) async throws -> [DeviceRemovalResult] {
        let topics = try await store.topics().filter(sees)
        var removed: [DeviceRemovalResult] = []
        var found = try await named(text, as: keys, topics)
        guard !found.devices.isEmpty else {
            throw Failure(
                .notFound,
                "no device \"\(Redaction.withoutTokens(text))\" to remove; give an installation id, a user id or a whole "
                    + "token")
        }
        try confirm(found.devices)
        while !found.devices.isEmpty {
            for device in found.devices { removed.append(try await remove(device.id, by: actor, now: now)) }
            if found.isAll { break }
            found = try await named(text, as: keys, topics)
        }
        return removed
    }

    /// Returns devices that were not removed before, and whether there are no others.
    private func named(
        _ text: String, as keys: [DeviceKey], _ topics: Set<String>
    ) async throws -> (devices: [StoredDevice], isAll: Bool) {
        let found = try await store.devices(matching: text, topics: topics)
        let meant = found.filter { device in
            device.statusReason != StoredDevice.removedReason
                && keys.contains { $0.names(device.record, text) }
        }
        return (meant, found.count < TokenEnd.devicesMax)
    }

    /// Deletes devices that are gone since before `goneBefore`, or not seen since `notSeenSince`. With `isDryRun`, only
    /// counts them.
    package func prune(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, isDryRun: Bool, by actor: Actor,
        now: Timestamp
    ) async throws -> PruneCounts {
        try await store.pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: topic, dryRun: isDryRun, now: now, by: actor)
    }
}

/// What names a device in full.
package enum DeviceKey: CaseIterable, Sendable {
    case installation, user, token

    func names(_ record: DeviceRecord, _ text: String) -> Bool {
        switch self {
        case .installation: record.installationID == text
        case .user: record.userID == text
        case .token: record.token.hex == text.lowercased()
        }
    }
}

/// The result of an export of devices.
package struct DeviceExport: Hashable, Sendable {
    package var devices: Int
    /// The number of devices with texts that were stored before an import had limits. An import refuses these texts.
    package var beyondLimits: Int

    /// What an import of the file cannot restore; `nil` if it restores everything.
    package var warning: String? {
        guard beyondLimits > 0 else { return nil }
        return
            "\(beyondLimits.counted("device")) \(beyondLimits == 1 ? "has" : "have") texts beyond the limits of an import "
            + "(\(DeviceRecord.textBytesMax) bytes; \(DeviceRecord.attributeBytesMax.grouped) for the value of an "
            + "attribute; \(DeviceRecord.attributesBytesMax.grouped) for all attributes, and for all tags): `fanfare "
            + "devices import` leaves out these texts, and refuses a device whose installation_id is too long"
    }
}

/// The stable shape of the result of removing a device.
package struct DeviceRemovalResult: Codable, Hashable, Sendable {
    package var device: Int64
    /// `false` if a row without personal data is kept until the device's pushes no longer count. In both cases, nothing
    /// is sent to the device any more.
    package var deleted: Bool

    package init(device: Int64, deleted: Bool) {
        self.device = device
        self.deleted = deleted
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
        "os_version", "model", "alerts_allowed", "registered_at", "last_seen_at", "badge", "tags", "attributes",
    ]

    package static func values(of record: DeviceRecord) -> [String] {
        let place = [record.token.hex, record.environment.rawValue, record.topic]
        let profile = [
            record.installationID, record.userID, record.locale, record.timeZone, record.country, record.appVersion,
            record.osVersion, record.model,
        ].map { text in text.map(EraseMarker.escaped) ?? "" }
        let alertsAllowed = record.alertsAllowed.map { $0 ? "true" : "false" } ?? ""
        let times = [record.registeredAt?.iso8601 ?? "", record.lastSeenAt?.iso8601 ?? ""]
        let badge = record.badge.map(String.init) ?? ""
        return place + profile + [alertsAllowed] + times
            + [badge, tags(record.tags ?? []), attributes(record.attributes ?? [:])]
    }

    /// Returns `a;b`, or a JSON list if an import would read that text as other tags.
    private static func tags(_ tags: [String]) -> String {
        let isPlain = tags.allSatisfy { tag in
            !tag.isEmpty && !tag.hasPrefix(" ") && !tag.hasSuffix(" ") && EraseMarker.escaped(tag) == tag
                && !tag.hasPrefix("[")
                && tag.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != ";" }
        }
        return isPlain ? tags.joined(separator: ";") : StoredJSON.array(tags)
    }

    /// Returns a JSON object; empty for a device without attributes.
    private static func attributes(_ attributes: [String: String]) -> String {
        attributes.isEmpty ? "" : StoredJSON.object(attributes.mapValues(EraseMarker.escaped))
    }
}

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
    /// The time since which the device is suspended or gone.
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
    /// The number on the app's icon, as far as it is known.
    package var badge: Int
    package var tags: [String]
    /// Absent if the result does not show attributes, because some may be secrets of the device.
    package var attributes: [String: String]?

    /// Returns the device with its attributes.
    package static func whole(_ device: StoredDevice) -> DeviceResult {
        var result = DeviceResult(device)
        result.attributes = device.record.attributes ?? [:]
        return result
    }

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
        badge = device.badge
        tags = record.tags ?? []
    }
}

/// The number of devices of one kind: the stable shape of each entry of `devices show --json` without a device.
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

/// The look-up of the devices that a person means.
package enum DeviceLookup {
    /// Returns the devices that a text may mean, or throws. A former token finds the device that had it.
    ///
    /// - Parameter sees: returns whether the caller may see devices of a topic. Any other device is treated as absent.
    package static func devices(
        _ text: String, in store: any DeviceRegistry, sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> [StoredDevice] {
        let all = try await store.topics()
        let seen = all.filter(sees)
        let found = try await matching(text, topics: seen == all ? nil : seen, in: store)
        guard !found.isEmpty else { throw nothing(text) }
        return found
    }

    private static func matching(
        _ text: String, topics: Set<String>?, in store: any DeviceRegistry
    ) async throws -> [StoredDevice] {
        let found = try await store.devices(matching: text, topics: topics)
        guard found.isEmpty, let token = DeviceToken(hex: text), let former = try await store.device(thatHad: token),
            topics?.contains(former.record.topic) ?? true
        else { return found }
        return [former]
    }

    static func nothing(_ text: String) -> Failure {
        Failure(
            .notFound,
            "no device \"\(shown(text))\" in the store; give an installation id, a user id, or the last 8 characters of "
                + "a token")
    }

    private static func shown(_ text: String) -> String {
        text.count > 16 ? "…" + text.suffix(8) : text
    }

    /// Returns the device of a topic that a text means. Throws unless there is exactly one.
    ///
    /// - Parameters:
    ///   - text: an installation id, a user id, a token or its last 8 characters.
    ///   - topic: the topic under which the device is registered.
    ///   - sees: returns whether the caller may see devices of a topic. Any other device is treated as absent.
    package static func device(
        _ text: String, topic: String, in store: any DeviceRegistry, sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> StoredDevice {
        let shown = shown(text)
        let fitting = sees(topic) ? try await matching(text, topics: [topic], in: store) : []
        guard let device = fitting.first else {
            let found = try await devices(text, in: store, sees: sees)
            throw Failure(
                .notFound,
                "device \"\(shown)\" is registered for \(found[0].record.topic), but the campaign is for \(topic)")
        }
        guard fitting.count == 1 else {
            throw Failure(
                .notFound,
                "\"\(shown)\" matches \(fitting.count) devices; name one of them: "
                    + fitting.map { $0.record.installationID ?? $0.record.token.redacted }.joined(separator: ", "))
        }
        return device
    }
}
