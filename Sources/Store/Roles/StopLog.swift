package import Model

/// The stops in force, see ``Model/StopOrder``: of everything, or of a campaign. A lease and a claim check them in
/// their transactions. A stop of a single run is a pause in that run's record, which the stopping process writes.
package protocol StopLog: Sendable {
    /// Returns the stops of everything and of campaigns.
    func stops() async throws -> StopOrders

    /// Puts a stop in force, with an event in the name of `actor`. A stop of a single run is not accepted.
    func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> StopRecording

    /// Ends the stop of this scope, with an event. The store remembers it as lifted, so that no process records it
    /// again from a file that it read earlier. Returns `nil`, and records no event, if no stop of this scope was in
    /// force.
    ///
    /// - Parameter file: the stop of this scope in the file, which is remembered as lifted as well.
    func liftStop(
        _ scope: StopOrder.Scope, inFile file: StopOrder?, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder?
}

extension StopLog {
    /// Ends a stop that is not in a file.
    package func liftStop(
        _ scope: StopOrder.Scope, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder? {
        try await liftStop(scope, inFile: nil, reason: reason, by: actor, now: now)
    }
}

/// The result of recording a stop.
package enum StopRecording: Hashable, Sendable {
    case recorded
    /// A stop of this scope is in force already, and stays as it is.
    case known
    /// This stop was in force and was lifted. A file of another machine still has it.
    case lifted
    /// The stop is for a single run, which is paused in its own record instead.
    case ofRun
}

/// The keys of the stops among the facts of a store. The values are JSON.
package enum StopRecordKey {
    /// The stops in force.
    package static let stops = "stops"
    /// The stops that were lifted last, oldest first.
    package static let lifted = "stops_lifted"
    /// The number of lifted stops that are remembered.
    package static let liftedMax = 100
}

extension StopOrder {
    /// The text of the stop in the audit log.
    package var recorded: String { "\(scope.text)\(reason.map { ": \($0)" } ?? "")" }

    /// Returns the text of its end in the audit log.
    package func lifted(reason: String) -> String {
        "\(scope.text), stopped by \(by) at \(at.iso8601), was lifted: \(reason)"
    }
}
