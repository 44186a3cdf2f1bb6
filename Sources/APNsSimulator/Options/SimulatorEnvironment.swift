/// Which of APNs' two worlds a port plays: tokens, keys and certificates of one are unknown in the other.
package enum SimulatorEnvironment: String, Hashable, Sendable, Codable, CaseIterable {
    case production, sandbox
}
