import FoundationEssentials
import Glibc
import HTTP2
import Platform

/// Checks whether the device token has a valid form (`ProviderProtocol` section 11, step 7).
enum DeviceTokenShape {
    /// Apple announced up to 100 bytes and advises against relying on a length. 32 bytes are usual.
    static let byteCounts = 32...100

    /// Decodes the token of a request path into `room`, which holds 100 bytes. Returns `nil` if it is not a token.
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

/// Checks the body (`ProviderProtocol` section 5). It does not check that the body is JSON, because Apple names no
/// reason for that.
extension Inspection {
    private struct Payload: Decodable {
        struct Visible: Decodable {
            init(from decoder: any Decoder) {}
        }

        struct APS: Decodable {
            var alert: Visible?
            var sound: Visible?
            var badge: Visible?
        }

        var aps: APS?
    }

    private static let visibleKeys = ["\"alert\"", "\"sound\"", "\"badge\""].map { Array($0.utf8) }

    /// Refuses a background push with visible content, which Apple calls an error. Apple names no reason for it, so
    /// Fanfare chose `InvalidPushType`.
    static func backgroundIsSilent(_ inspection: inout Inspection) -> Verdict? {
        guard inspection.pushType == .background else { return nil }
        let body = inspection.request.body
        // Parsing costs more than this search, and most payloads contain none of the keys.
        guard mentionsVisibleKey(body) else { return nil }
        let aps: Payload.APS?
        // A body that is not JSON cannot show anything.
        do { aps = try JSONDecoder().decode(Payload.self, from: Data(body)).aps } catch { return nil }
        let isSilent = aps?.alert == nil && aps?.sound == nil && aps?.badge == nil
        return isSilent ? nil : Verdict(.invalidPushType)
    }

    static func payloadIsGiven(_ inspection: inout Inspection) -> Verdict? {
        inspection.request.bodySize == 0 ? Verdict(.payloadEmpty) : nil
    }

    static func payloadFits(_ inspection: inout Inspection) -> Verdict? {
        let policy = inspection.policy
        let limit = inspection.pushType == .voip ? policy.voipPayloadBytesMax : policy.payloadBytesMax
        return inspection.request.bodySize > limit ? Verdict(.payloadTooLarge) : nil
    }

    private static func mentionsVisibleKey(_ body: UnsafeRawBufferPointer) -> Bool {
        guard var start = body.baseAddress else { return false }
        let end = start + body.count
        while let quote = memchr(start, Int32(UInt8(ascii: "\"")), end - start) {
            let rest = UnsafeRawBufferPointer(start: quote, count: end - UnsafeRawPointer(quote))
            if visibleKeys.contains(where: { rest.hasPrefix($0) }) { return true }
            start = UnsafeRawPointer(quote) + 1
        }
        return false
    }
}
