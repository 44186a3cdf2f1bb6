package import Store

/// A store of SQLite or PostgreSQL: what both do by the same statements stands here once, as the roles' own methods. An
/// adapter has what truly differs.
package protocol RelationalStore: AllRoles {
    associatedtype Session: SQLSession

    /// Whether the time is the caller's, not a server's.
    var goesByCallersClock: Bool { get }

    /// One read snapshot; cancellable.
    func snapshot<Value: Sendable>(
        _ cost: ReadCost, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value

    /// One transaction, not cancellable once begun.
    @discardableResult
    func transaction<Value: Sendable>(
        _ promise: WritePromise, _ body: @escaping @Sendable (Session) throws -> Value
    ) async throws -> Value
}

/// What a transaction that writes promises.
package enum WritePromise: Hashable, Sendable {
    /// A power loss may take the last of them, whole ones and none before them.
    case quick
    /// On disk when the call returns.
    case durable
    /// The same for a sender, which asks again by itself: it does not wait long for other writers.
    case durableOfSender
}
