import FoundationEssentials
import HTTP2

/// The body of an error answer: `{"reason":"...","timestamp":...}` (`ProviderProtocol` section 7). Errors are rare: a
/// success has no body and never gets here.
///
/// Anything may come from a proxy or a broken service: a body that is no such object names no reason, one that breaks
/// off behind its reason still names it. Other fields are passed over.
struct ErrorBody: Hashable {
    private static let decoder = JSONDecoder()

    var reason: String?
    var timestamp: Int64?

    init(parsing bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        if let fields = try? Self.decoder.decode(Fields.self, from: Data(bytes)) {
            reason = fields.reason
            timestamp = fields.timestamp
            return
        }
        let text = String(decoding: bytes, as: UTF8.self)
        reason = text.firstMatch(of: /^\s*\{(?s:.*?)"reason"\s*:\s*"([^"\\]*)"/).map { String($0.1) }
    }

    private struct Fields: Decodable {
        enum CodingKeys: String, CodingKey { case reason, timestamp }

        let reason: String?
        let timestamp: Int64?

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            reason = try? values.decode(String.self, forKey: .reason)
            timestamp = Self.wholeNumber(values)
        }

        /// Also in quotes, or with a fraction, which is dropped.
        private static func wholeNumber(_ values: KeyedDecodingContainer<CodingKeys>) -> Int64? {
            if let number = try? values.decode(Int64.self, forKey: .timestamp) { return number }
            let fraction = try? values.decode(Double.self, forKey: .timestamp)
            let text = try? values.decode(String.self, forKey: .timestamp)
            return (fraction ?? text.flatMap { Double($0) }).flatMap { Int64(exactly: $0.rounded(.towardZero)) }
        }
    }
}

/// What the peer says with a GOAWAY: APNs sends JSON with a `reason`, others plain text or nothing (`ProviderProtocol`
/// section 8).
struct GoAwayReason: CustomStringConvertible {
    private static let bytesMax = 200

    let reason: PushReason?
    let description: String

    init(_ notice: GoAwayNotice) {
        if let name = ErrorBody(parsing: notice.debugData).reason {
            reason = PushReason(name)
            description = String(name.prefix(Self.bytesMax))
            return
        }
        reason = nil
        let printable = notice.debugData.prefix(Self.bytesMax).filter { (0x20..<0x7f).contains($0) }
        let text = String(decoding: printable, as: UTF8.self)
        description = text.isEmpty ? "GOAWAY with code \(notice.code)" : text
    }

    /// No connection with this certificate will do better.
    var isAboutCertificate: Bool { reason == .badCertificate || reason == .badCertificateEnvironment }
}
