import FoundationEssentials

/// The notifications on the screens of the devices that a simulator sent to, as Apple describes the behaviour of
/// devices (`ProviderProtocol` section 6). The simulator updates it from the entries of its log.
///
/// A device is online by default. An online device shows a push immediately. For an offline device, the service keeps
/// the newest push for each app until it expires. A notification replaces the one with the same collapse id. A
/// background push with a collapse id under the key `recall` removes that notification, because the app of these
/// devices supports it.
package struct SimulatedDevices: Sendable {
    package struct Notification: Hashable, Sendable {
        package var collapseID: String?
        package var payload: String
    }

    fileprivate struct Device {
        var isOnline = true
        /// The shown notifications, newest last.
        var shown: [Notification] = []
        /// The stored push for each `apns-topic`.
        var stored: [String: Stored] = [:]
    }

    fileprivate struct Stored {
        var push: SimulatorLogEntry
        /// Milliseconds since 1970. `nil` if the service may keep the push indefinitely.
        var expiresAt: Int64?
    }

    private var devices: [String: Device] = [:]

    package init() {}

    /// Returns the notifications on a device's screen, newest last.
    ///
    /// - Parameter token: in lower-case hex.
    package func shown(on token: String) -> [Notification] { devices[token]?.shown ?? [] }

    /// The number of devices that show each payload.
    package var devicesByPayload: [String: Int] {
        devices.values.reduce(into: [:]) { counts, device in
            for payload in Set(device.shown.map(\.payload)) { counts[payload, default: 0] += 1 }
        }
    }

    /// The number of devices that show more than one notification.
    package var devicesWithSeveral: Int { devices.values.count { $0.shown.count > 1 } }

    /// Takes a device offline.
    package mutating func goOffline(_ token: String) { devices[token, default: Device()].isOnline = false }

    /// Brings a device online. The device then shows the stored pushes that have not expired.
    ///
    /// - Parameter nowMs: milliseconds since 1970.
    package mutating func goOnline(_ token: String, nowMs: Int64) {
        var device = devices[token] ?? Device()
        device.isOnline = true
        for stored in device.stored.values.sorted(by: { $0.push.sequence < $1.push.sequence })
        where stored.expiresAt.map({ $0 > nowMs }) ?? true {
            device.show(stored.push)
        }
        device.stored = [:]
        devices[token] = device
    }

    /// Applies a request of the log. A request that was not accepted changes nothing.
    mutating func see(_ entry: SimulatorLogEntry) {
        guard entry.status == 200, let token = entry.token else { return }
        if devices[token, default: Device()].isOnline {
            devices[token, default: Device()].show(entry)
        } else if let seconds = entry.expiration.map({ Int64($0) ?? 0 }) {
            // 0 means one attempt, and the device is offline.
            guard seconds > 0 else { return }
            store(entry, for: token, until: seconds * 1000)
        } else {
            store(entry, for: token, until: nil)
        }
    }

    private mutating func store(_ push: SimulatorLogEntry, for token: String, until expiresAt: Int64?) {
        devices[token]?.stored[push.topic ?? ""] = Stored(push: push, expiresAt: expiresAt)
    }
}

extension SimulatedDevices.Device {
    fileprivate mutating func show(_ push: SimulatorLogEntry) {
        let payload = push.payload.map { String(decoding: $0, as: UTF8.self) } ?? ""
        switch push.pushType {
        case "alert":
            if let id = push.collapseID { shown.removeAll { $0.collapseID == id } }
            shown.append(SimulatedDevices.Notification(collapseID: push.collapseID, payload: payload))
        case "background":
            guard let id = Recall.collapseID(in: payload) else { return }
            shown.removeAll { $0.collapseID == id }
        default: break
        }
    }
}

/// The content of a background push that the app of a simulated device reads.
private struct Recall: Decodable {
    var recall: String

    static func collapseID(in payload: String) -> String? {
        try? JSONDecoder().decode(Recall.self, from: Data(payload.utf8)).recall
    }
}
