package import Model

/// The values that people gave for single starts of a campaign's schedule. They are kept until their start is long
/// over.
///
/// Each method is one transaction.
package protocol OccurrenceValueLog: Sendable {
    /// Stores the values of an occurrence in place of its earlier ones, with an event. Deletes the values whose start
    /// is more than ``GivenValues/kept`` ago.
    func giveValues(_ values: OccurrenceValues, by actor: Actor) async throws -> GivenValues

    /// Removes the values of an occurrence, with an event. Returns `false` if it has none.
    func removeValues(campaign: String, occurrence: String, by actor: Actor, now: Timestamp) async throws -> Bool

    /// Returns `nil` if no values were given for the occurrence.
    func values(campaign: String, occurrence: String) async throws -> OccurrenceValues?

    /// Returns the values of all occurrences that start at a moment or later, in the order of their starts.
    func values(startingFrom moment: Timestamp) async throws -> [OccurrenceValues]
}

/// What became of values that a person gave.
package enum GivenValues: Hashable, Sendable {
    case stored
    /// The occurrence has this run already, with the values that were stored when it began.
    case started(Int64)
    /// The store has values for ``countMax`` other occurrences.
    case tooMany

    package static let kept: Duration = .seconds(90 * 86_400)
    package static let countMax = 5_000
}
