/// The two worlds of APNs. Tokens, and newer keys, never cross between them (`apns-protocol.md` section 1).
package enum PushEnvironment: String, Hashable, Sendable, Codable, CaseIterable {
    case production
    case sandbox
}
