import Campaigns
import Model
import Store
import Synchronization

/// A device as text, with the last 8 characters of its token.
enum DeviceText {
    static func text(_ device: StoredDevice) -> String {
        fields(device).map { name, value in name.padded(to: 18) + value }.joined(separator: "\n")
    }

    /// Returns one line: the device's identity, and the fields that audiences use most often.
    static func line(_ device: StoredDevice) -> String {
        let record = device.record
        let all: [String?] = [
            record.installationID ?? "device \(device.id)", record.token.redacted, record.environment.rawValue,
            record.locale, record.appVersion, device.status == .active ? nil : device.status.rawValue,
        ]
        return all.compactMap(\.self).joined(separator: " ")
    }

    private static func fields(_ device: StoredDevice) -> [(String, String)] {
        let record = device.record
        let all: [(String, String?)] = [
            ("device", "\(device.id)"), ("installation_id", record.installationID), ("user_id", record.userID),
            ("topic", record.topic), ("environment", record.environment.rawValue),
            ("token", record.token.redacted), ("status", device.status.rawValue),
            ("status_reason", device.statusReason), ("status_at", device.statusAt?.iso8601),
            ("locale", record.locale), ("time_zone", record.timeZone),
            ("country", record.country), ("app_version", record.appVersion), ("os_version", record.osVersion),
            ("model", record.model), ("alerts_allowed", record.alertsAllowed.map { $0 ? "true" : "false" }),
            ("registered_at", record.registeredAt?.iso8601), ("last_seen_at", record.lastSeenAt?.iso8601),
            ("badge", "\(device.badge)"),
            ("tags", record.tags.flatMap { $0.isEmpty ? nil : $0.joined(separator: ", ") }),
        ]
        // JSON escapes control characters in attributes, which a terminal would otherwise obey.
        let attributes = record.attributes.flatMap { $0.isEmpty ? nil : StoredJSON.object($0) }
        return (all + [("attributes", attributes)]).compactMap { name, value in value.map { (name, $0) } }
    }
}

/// The suspended devices, whose token APNs refused as bad or as one of another topic. They get no pushes.
struct SuspendedDevices {
    let json: Bool

    /// Prints a line per device as the devices are read, and then the counts by reason to standard error. With `json`,
    /// prints one array at the end.
    func show(_ registered: ManageDevices) async throws {
        let counts = Mutex<[String: Int]>([:])
        let all = Mutex<[DeviceResult]>([])
        let count = try await registered.suspended { devices in
            for device in devices { counts.withLock { $0[Self.reason(device), default: 0] += 1 } }
            if json {
                all.withLock { $0 += devices.map(DeviceResult.init) }
            } else {
                Console.print(devices.map(Self.line).joined(separator: "\n"))
            }
        }
        if json { return Console.print(try ResultJSON.text(all.withLock { $0 })) }
        guard count > 0 else { return Console.print("no device is suspended") }
        let reasons = counts.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.value.grouped) \($0.key)" } }
        Console.note(
            "\(count.grouped) suspended: \(reasons.joined(separator: ", ")). A device becomes active again when it "
                + "registers with a new token, or at a later time than the one shown; `fanfare explain` shows which "
                + "run suspended it.")
    }

    private static func reason(_ device: StoredDevice) -> String { device.statusReason ?? "no recorded reason" }

    private static func line(_ device: StoredDevice) -> String {
        let record = device.record
        return [
            (record.installationID ?? "device \(device.id)").padded(to: 36), record.token.redacted,
            record.environment.rawValue.padded(to: 10), reason(device).padded(to: 22),
            device.statusAt.map { "since \($0.iso8601)" } ?? "", record.topic,
        ].joined(separator: "  ")
    }
}
