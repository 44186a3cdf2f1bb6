import Foundation
import Model
import Synchronization

/// The server's time, as this process estimates it between two responses of the server. The process's own clock may
/// be wrong or changed.
///
/// The estimate advances with this machine's uptime, which cannot be changed and includes sleep.
final class ServerClock: Sendable {
    private struct Reading {
        /// The server's clock minus the machine's uptime.
        var offset: Duration
        var roundTrip: Duration
        var at: Duration
    }

    /// The time for which a reading is preferred to newer ones with a longer round trip. A longer round trip makes a
    /// reading less exact, but an old reading is wrong because clocks drift.
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

    /// The server's time; `nil` before the first reading.
    var now: Timestamp? {
        let uptime = Self.uptime()
        return reading.withLock { reading in
            reading.map { Timestamp(milliseconds: ($0.offset + uptime).wholeMilliseconds) }
        }
    }

    /// Returns the time since the machine started, from CLOCK_BOOTTIME.
    static func uptime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
