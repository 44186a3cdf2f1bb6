package import Model

/// Changes of files that wait until an account that may start runs releases them. Each file has at most one.
///
/// Each method is one transaction.
package protocol ChangeLog: Sendable {
    /// Stores a change in place of the file's earlier change `known`, with an event.
    ///
    /// - Parameters:
    ///   - known: the change that the author has seen; `nil` if there was none.
    ///   - most: the maximum number of changes that may wait.
    func holdChange(
        _ change: PendingChange, insteadOf known: Int64?, most: Int, detail: String
    ) async throws -> HoldResult

    /// Lists all changes without their texts, oldest first.
    func pendingChanges() async throws -> [PendingChange]

    /// Returns `nil` if there is no such change.
    func pendingChange(_ id: Int64) async throws -> PendingChange?

    /// Removes a change, with an event. Returns `false`, and records nothing, if it is gone already.
    func endChange(
        _ id: Int64, _ kind: EventKind, by actor: Actor, detail: String, now: Timestamp
    ) async throws -> Bool
}

/// The outcome of ``ChangeLog/holdChange(_:insteadOf:most:detail:)``.
package enum HoldResult: Hashable, Sendable {
    case held(PendingChange)
    /// The file's pending change is not the one that the author has seen.
    case changedMeanwhile
    case tooMany
}
