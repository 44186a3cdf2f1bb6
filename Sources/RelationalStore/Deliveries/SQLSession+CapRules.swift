import Model
import Store

extension SQLSession {
    /// Returns the campaign classes that frequency caps distinguish, by the code that the ledger stores for a push.
    package func capClasses() throws -> [UInt32: String] {
        var classes: [UInt32: String] = [:]
        try each("SELECT code, class FROM cap_rule", values: []) { row in
            classes[UInt32(truncatingIfNeeded: try row.int64(0))] = try row.text(1)
        }
        return classes
    }

    /// Returns the pushes that frequency caps count for the device and for its user.
    func cappedPushes(of device: StoredDevice) throws -> [DeviceHistory.CappedPush] {
        let person = device.record.userID.map { CapKey.person(topic: device.record.topic, user: $0) } ?? 0
        return try caps(of: Set(CapUsage.keys(device: device.id, person: person)))
            .history(device: device.id, person: person, classes: capClasses())
    }
}
