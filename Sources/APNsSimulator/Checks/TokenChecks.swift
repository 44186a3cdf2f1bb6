import HTTP2

/// Is the device token one that this environment knows? (`apns-protocol.md` section 11, step 7)
enum DeviceTokenShape {
    /// Apple announced up to 100 bytes and says not to count on a length; 32 are usual.
    static let byteCounts = 32...100

    /// Decodes the token of a request path into `room`, which holds 100 bytes; nil when it is not one.
    static func decode(
        path: UnsafeRawBufferPointer?, into room: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        guard let path, path.count > Inspection.devicePath.count else { return nil }
        let digits = UnsafeRawBufferPointer(rebasing: path[Inspection.devicePath.count...])
        guard digits.count.isMultiple(of: 2), byteCounts.contains(digits.count / 2) else { return nil }
        guard Hex.decode(digits, into: room) else { return nil }
        return UnsafeRawBufferPointer(rebasing: room[0..<digits.count / 2])
    }
}

extension Inspection {
    static func tokenIsHex(_ inspection: inout Inspection) -> Verdict? {
        inspection.connection.token == nil ? Verdict(.badDeviceToken) : nil
    }

    static func tokenIsRegistered(_ inspection: inout Inspection) -> Verdict? {
        guard let token = inspection.connection.token else { return Verdict(.badDeviceToken) }
        inspection.device = inspection.state.registry.device(token, in: inspection.connection.environment)
        guard inspection.device == nil else { return nil }
        return inspection.policy.acceptsUnknownTokens ? nil : Verdict(.badDeviceToken)
    }

    static func tokenIsForTopic(_ inspection: inout Inspection) -> Verdict? {
        guard let device = inspection.device, let topic = inspection.topic else { return nil }
        let isSame = inspection.state.registry.topics[device.topic] == topic.bytes
        return isSame ? nil : Verdict(.deviceTokenNotForTopic)
    }

    static func tokenIsActive(_ inspection: inout Inspection) -> Verdict? {
        inspection.device?.goneSince.map { Verdict(.unregistered, timestamp: $0) }
    }
}
