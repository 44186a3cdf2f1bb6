import HTTP2

/// What the peer says with a GOAWAY: APNs sends JSON with a `reason`, others plain text or nothing
/// (`ProviderProtocol` section 8).
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
