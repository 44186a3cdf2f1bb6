package import Model
import Store

/// Notices that an endpoint refuses connections, or gives no response although a lane waits for one.
///
/// The circuit breaker takes minutes until it stops the runs. This type only reports the outage, within 10 s, because
/// each run checks once a second with its heartbeat.
struct EndpointReach: Hashable, Sendable {
    enum Change: Hashable, Sendable {
        case lost(since: Timestamp)
        case found
    }

    /// The time without a response after which an outage is reported.
    static let patience: Duration = .seconds(5)
    /// The maximum age of a check. Runs that paused themselves check again every 5 minutes.
    private static let lookMax: Duration = .seconds(360)

    private var waitingSince: Duration?
    private var heardAt: Duration?
    private var lookedAt: Duration?
    private var downSince: Timestamp?
    private var isFoundUntold = false

    /// Records a response.
    mutating func heard(at uptime: Duration) {
        heardAt = uptime
        waitingSince = nil
        if downSince != nil { (downSince, isFoundUntold) = (nil, true) }
    }

    /// Returns ``Change/found`` if the first response after an outage was not reported yet. The run may end before the
    /// next check.
    mutating func takeFound() -> Change? {
        defer { isFoundUntold = false }
        return isFoundUntold ? .found : nil
    }

    /// Returns the change to report. Each change is returned once.
    ///
    /// - Parameter isWaiting: whether a lane has something to send, or waits for a response.
    mutating func look(isWaiting: Bool, at now: ClockReading) -> Change? {
        lookedAt = now.uptime
        let found = takeFound()
        guard isWaiting else {
            waitingSince = nil
            return found
        }
        let since = max(waitingSince ?? now.uptime, heardAt ?? .zero)
        waitingSince = since
        guard downSince == nil, now.uptime - since >= Self.patience else { return found }
        let moment = now.wall - (now.uptime - since)
        downSince = moment
        return .lost(since: moment)
    }

    /// Returns since when the endpoint has given no response. Returns `nil` if it responds, or if no sender checked
    /// lately.
    func outage(at uptime: Duration) -> Timestamp? {
        lookedAt.map { uptime - $0 < Self.lookMax } ?? false ? downSince : nil
    }
}

/// An endpoint that gives no response to this process.
package struct EndpointOutage: Hashable, Sendable, CustomStringConvertible {
    package var environment: PushEnvironment
    package var endpoint: String
    package var since: Timestamp

    package var description: String {
        "APNs (\(environment), \(endpoint)) has been unreachable since \(since.iso8601); sending waits and is retried"
    }
}
