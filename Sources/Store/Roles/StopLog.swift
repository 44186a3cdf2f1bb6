package import Model

/// The stops in force, see ``Model/StopOrder``: of everything, or of a campaign. A lease and a claim ask for them in
/// their transactions; a run that is stopped alone is paused on record by whoever stopped it.
package protocol StopLog: Sendable {
    /// Of everything and of campaigns.
    func stops() async throws -> StopOrders

    /// Puts it in force, with an event in the name of `actor`. That of a run alone is not taken.
    func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> StopRecording

    /// Ends the stop of this scope, with an event, and remembers it as lifted, so that no process records it again from
    /// a file that it read earlier. Returns `nil`, and records no event, if none of this scope was in force.
    ///
    /// - Parameter file: the stop of this scope in the file, remembered as lifted as well.
    func liftStop(
        _ scope: StopOrder.Scope, inFile file: StopOrder?, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder?
}

extension StopLog {
    /// Ends a stop that stands in no file.
    package func liftStop(
        _ scope: StopOrder.Scope, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder? {
        try await liftStop(scope, inFile: nil, reason: reason, by: actor, now: now)
    }
}

/// What became of a stop that was to be put on record.
package enum StopRecording: Hashable, Sendable {
    case recorded
    /// One of its scope is in force already, and stays as it is.
    case known
    /// This very one was in force, and was lifted: a file of another machine still has it.
    case lifted
    /// It is for the run's record, which is paused.
    case ofRun
}

/// Under which keys the facts of a store hold stops, as JSON.
package enum StopRecordKey {
    /// Those in force.
    package static let stops = "stops"
    /// The latest that were lifted, the oldest first.
    package static let lifted = "stops_lifted"
    /// So many are remembered.
    package static let liftedMax = 100
}

extension StopOrder {
    /// What the audit says of it.
    package var recorded: String { "\(scope.text)\(reason.map { ": \($0)" } ?? "")" }

    /// What the audit says of its end.
    package func lifted(reason: String) -> String {
        "\(scope.text), stopped by \(by) since \(at.iso8601), may go on: \(reason)"
    }
}
