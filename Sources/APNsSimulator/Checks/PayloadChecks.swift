import FoundationEssentials
import Glibc
import HTTP2

/// Does the body fit? (`apns-protocol.md` section 5) That it is JSON is not checked: Apple names no reason for it.
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

    /// Apple: a background push with something to show is an error; the reason is our choice.
    static func backgroundIsSilent(_ inspection: inout Inspection) -> Verdict? {
        guard inspection.pushType == .background else { return nil }
        let body = inspection.request.body
        // Parsing is dear; mostly none of the words is anywhere.
        guard mentionsVisibleKey(body) else { return nil }
        let aps: Payload.APS?
        // What is not JSON cannot show anything.
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
        guard var place = body.baseAddress else { return false }
        let end = place + body.count
        while let quote = memchr(place, Int32(UInt8(ascii: "\"")), end - place) {
            let rest = UnsafeRawBufferPointer(start: quote, count: end - UnsafeRawPointer(quote))
            if visibleKeys.contains(where: { rest.hasPrefix($0) }) { return true }
            place = UnsafeRawPointer(quote) + 1
        }
        return false
    }
}
