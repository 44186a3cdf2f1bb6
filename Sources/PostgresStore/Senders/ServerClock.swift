import Foundation
import Model
import Synchronization

/// The server's time, as this process tells it between two answers of the server: its own clock may be wrong, or set.
///
/// It goes on by the time since this machine started, which nobody sets and which counts the time it sleeps.
final class ServerClock: Sendable {
    private struct Reading {
        /// The server's clock less the machine's uptime.
        var offset: Duration
        var roundTrip: Duration
        var at: Duration
    }

    /// A reading that took longer than the one before says less, but clocks do not run alike for ever.
    private static let keptFor: Duration = .seconds(60)

    private let reading = Mutex<Reading?>(nil)

    /// - Parameters:
    ///   - server: what the server's clock showed between the two moments, which are ``uptime``.
    func note(_ server: Timestamp, between sent: Duration, and received: Duration) {
        let roundTrip = received - sent
        reading.withLock { reading in
            if let known = reading, known.roundTrip < roundTrip, received - known.at < Self.keptFor { return }
            let offset = .milliseconds(server.milliseconds) - (sent + roundTrip / 2)
            reading = Reading(offset: offset, roundTrip: roundTrip, at: received)
        }
    }

    /// Nil: the server was not asked yet.
    var now: Timestamp? {
        let uptime = Self.uptime()
        return reading.withLock { reading in
            reading.map { Timestamp(milliseconds: ($0.offset + uptime).wholeMilliseconds) }
        }
    }

    /// CLOCK_BOOTTIME.
    static func uptime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
