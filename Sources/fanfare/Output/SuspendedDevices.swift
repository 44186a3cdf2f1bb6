import Model
import Store
import Synchronization
import Campaigns

/// The devices nothing is sent to because APNs called their token bad, or of another topic.
struct SuspendedDevices {
    let json: Bool

    /// A line per device as they are read; the sum by reason goes to standard error.
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
        if json { return Console.print(try JSONOutput.text(all.withLock { $0 })) }
        guard count > 0 else { return Console.print("no device is suspended") }
        let reasons = counts.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.value.grouped) \($0.key)" } }
        Console.note(
            "\(count.grouped) suspended: \(reasons.joined(separator: ", ")). Each is active again when it registers with a "
                + "new token, or at a later time than the one shown; `fanfare explain` tells which run suspended it.")
    }

    private static func reason(_ device: StoredDevice) -> String { device.statusReason ?? "no reason on record" }

    private static func line(_ device: StoredDevice) -> String {
        let record = device.record
        return [
            (record.installationID ?? "device \(device.id)").padded(to: 36), record.token.redacted,
            record.environment.rawValue.padded(to: 10), reason(device).padded(to: 22),
            device.statusAt.map { "since \($0.iso8601)" } ?? "", record.topic,
        ].joined(separator: "  ")
    }
}
