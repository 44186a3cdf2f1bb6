import HTTP2

/// One connection of a lane, and what the lane knows of it. The lane's thread only.
final class NativeConnection {
    let client: ClientConnection
    var warmth = Warmth()
    var order = StartOrder()
    var liveness: Liveness
    /// The reason of the peer's GOAWAY, in words.
    var goAway: String?
    /// Since when the peer lets nothing start although nothing is under way.
    var stalledSince: UInt64?

    init(_ client: ClientConnection, limits: LaneLimits, now: UInt64) {
        self.client = client
        liveness = Liveness(limits, now: now)
    }

    /// Requests that may be on the wire at once.
    func streamLimit(_ streamsMax: Int) -> Int {
        warmth.streamLimit(whenWide: min(streamsMax, client.streamLimit))
    }
}
