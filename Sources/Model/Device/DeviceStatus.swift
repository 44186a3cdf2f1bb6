/// Whether a device may be sent to.
package enum DeviceStatus: String, Hashable, Sendable, Codable, CaseIterable {
    /// Sent to. May become `suspended` or `gone`.
    case active
    /// APNs called its token wrong for this environment or topic; kept, not sent to, `active` again on registration.
    case suspended
    /// APNs called its token inactive after its last registration; `active` again only with a newer registration.
    case gone
}
