import Foundation
import Model
import Synchronization

/// The server's time, as this process knows it between two answers of the server. The process's own clock may be wrong,
/// or may be set.
///
/// It advances with the time since this machine started. That time cannot be set, and it includes sleep.
final class ServerClock: Sendable {
    private struct Reading {
        /// The server's clock minus the machine's uptime.
        var offset: Duration
        var roundTrip: Duration
        var at: Duration
    }

    /// How long a reading is kept although a newer one took longer. A slower reading is less exact, but two clocks
    /// drift apart.
    private static let keptFor: Duration = .seconds(60)

    private let reading = Mutex<Reading?>(nil)

    /// - Parameters:
    ///   - server: the time that the server's clock showed between the two moments, which are ``uptime``.
    func note(_ server: Timestamp, between sent: Duration, and received: Duration) {
        let roundTrip = received - sent
        reading.withLock { reading in
            if let known = reading, known.roundTrip < roundTrip, received - known.at < Self.keptFor { return }
            let offset = .milliseconds(server.milliseconds) - (sent + roundTrip / 2)
            reading = Reading(offset: offset, roundTrip: roundTrip, at: received)
        }
    }

    /// The server's time; `nil` if the server was not asked yet.
    var now: Timestamp? {
        let uptime = Self.uptime()
        return reading.withLock { reading in
            reading.map { Timestamp(milliseconds: ($0.offset + uptime).wholeMilliseconds) }
        }
    }

    /// Returns the time of CLOCK_BOOTTIME.
    static func uptime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
