package import Model

/// Changes of files that wait until an account that may start runs releases them. Each file has at most one.
///
/// Each method is one transaction.
package protocol ChangeLog: Sendable {
    /// Stores the texts of one save, each in place of its file's earlier change and with an event: all or none.
    ///
    /// - Parameter most: the maximum number of changes that may wait.
    func holdChanges(_ texts: [TextToHold], most: Int) async throws -> HoldResult

    /// Lists all changes without their texts, oldest first.
    func pendingChanges() async throws -> [PendingChange]

    /// Returns `nil` if there is no such change.
    func pendingChange(_ id: Int64) async throws -> PendingChange?

    /// Removes changes, each with an event: all or none. Returns the id of a change that is gone already, because it
    /// was ended or replaced. The others then stay, and `act` is not called.
    ///
    /// - Parameter act: writes or checks the files of the changes, before the removal is committed. Meanwhile no other
    ///   call can end or replace a change. If it throws, all changes stay. It may be called again if the connection to
    ///   the store breaks.
    func endChanges(
        _ changes: [ChangeToEnd], _ kind: EventKind, by actor: Actor, now: Timestamp,
        _ act: @escaping @Sendable () throws -> Void
    ) async throws -> Int64?
}

/// A change that is released or rejected.
package struct ChangeToEnd: Sendable {
    package var id: Int64
    package var detail: String
    /// The SHA-256 in hex of the change's text, by the path of its file, for the event.
    package var files: [String: String]

    package init(_ id: Int64, detail: String, files: [String: String] = [:]) {
        self.id = id
        self.detail = detail
        self.files = files
    }
}

/// A text of a save that waits for release.
package struct TextToHold: Sendable {
    package var change: PendingChange
    /// The file's change that the author has seen; `nil` if there was none.
    package var known: Int64?
    package var detail: String
    /// The SHA-256 in hex of the text, by the path of its file, for the event.
    package var files: [String: String]
    /// Whether the text is that of the file, so that nothing waits after the save.
    package var withdraws: Bool

    package init(
        change: PendingChange, known: Int64?, detail: String, files: [String: String] = [:], withdraws: Bool = false
    ) {
        self.change = change
        self.known = known
        self.detail = detail
        self.files = files
        self.withdraws = withdraws
    }
}

/// The outcome of ``ChangeLog/holdChanges(_:most:)``.
package enum HoldResult: Hashable, Sendable {
    /// The changes in the order of the texts, with `nil` for each withdrawn text.
    case held([PendingChange?])
    /// The pending change of the file of this text is not the one that the author has seen. Nothing was stored.
    case changedMeanwhile(at: Int)
    case tooMany
}
