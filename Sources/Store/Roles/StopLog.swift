package import Model

/// The stops in force, see ``Model/StopOrder``: of everything, or of a campaign. A lease and a claim ask for them in
/// their transactions; a run that is stopped alone is paused on record by whoever stopped it.
package protocol StopLog: Sendable {
    /// Of everything and of campaigns.
    func stops() async throws -> StopOrders

    /// Puts it in force, with an event in the name of `actor`. False: one of its scope is in force already, and stays as
    /// it is. That of a run alone is not taken: false.
    func recordStop(_ order: StopOrder, by actor: Actor, now: Timestamp) async throws -> Bool

    /// Ends it, with an event. Nil: none of this scope was in force, and nothing is changed.
    func liftStop(
        _ scope: StopOrder.Scope, reason: String, by actor: Actor, now: Timestamp
    ) async throws -> StopOrder?
}

/// Under which key the facts of a store hold the stops in force, as JSON.
package enum StopRecordKey {
    package static let stops = "stops"
}

extension StopOrder {
    /// What the audit says of it.
    package var recorded: String { "\(scope.text)\(reason.map { ": \($0)" } ?? "")" }

    /// What the audit says of its end.
    package func lifted(reason: String) -> String {
        "\(scope.text), stopped by \(by) since \(at.iso8601), may go on: \(reason)"
    }
}
