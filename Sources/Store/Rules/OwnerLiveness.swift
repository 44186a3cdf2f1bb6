package import Model

/// When an owner of a run, or the daemon, is taken for dead: its process has certainly ended, or it was not heard of for
/// a while and nothing else is known of its process.
package enum OwnerLiveness {
    /// Without a heartbeat for this long.
    package static let staleAfter: Duration = .seconds(15)

    /// Whether the process behind an owner's name has ended for certain, so that nobody needs to wait until its
    /// heartbeat is stale. Where it cannot be told: false.
    package typealias HasEnded = @Sendable (_ owner: String) -> Bool

    /// A heartbeat just `staleAfter` old is stale.
    package static func isAlive(
        _ owner: String, heartbeat: Timestamp, at now: Timestamp, staleAfter: Duration, hasEnded: HasEnded
    ) -> Bool {
        now < heartbeat + staleAfter && !hasEnded(owner)
    }
}
