/// The limits on the expensive reads of one outside caller, see ``ReadCost/expensive``.
///
/// The front end sets ``current`` around a request, and the store's adapters apply it to every expensive read. So no
/// use case and no route can forget it. A process without an allowance, such as a command, reads without a limit.
package struct ReadAllowance: Sendable {
    @TaskLocal package static var current: ReadAllowance?

    /// `nil` if the reads wait for no turn.
    private let queue: ReadQueue?
    private let caller: String
    private let limit: Duration
    private let presence: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - queue: shared by all outside callers of one store.
    ///   - caller: a caller has one turn at a time.
    ///   - limit: the longest time from the request to the response, including the wait for a turn.
    ///   - presence: returns when the caller is gone, which ends the read; `nil` if only the limit ends it.
    package init(
        queue: ReadQueue, caller: String, limit: Duration = ReadQueue.timeMax,
        presence: (@Sendable () async -> Void)? = nil
    ) {
        self.queue = queue
        self.caller = caller
        self.limit = limit
        self.presence = presence
    }

    /// Creates an allowance for the reads that this process does for one campaign. They wait for no turn, and each
    /// ends after `limit`.
    package init(limit: Duration) {
        self.limit = limit
        queue = nil
        caller = ""
        presence = nil
    }

    /// Runs `body` with this allowance in force.
    package func use<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        try await Self.$current.withValue(self) { try await body() }
    }

    /// Carries out an expensive read within the current allowance. The read must end when its task is cancelled.
    ///
    /// Throws ``ReadRefusal``, `CancellationError` if the caller is gone, and the errors of the read.
    package static func spend<Value: Sendable>(
        _ read: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let current else { return try await read() }
        return try await current.spend(read)
    }

    private func spend<Value: Sendable>(_ read: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { [queue, caller, limit, presence] group in
            // Reads within this read belong to the same turn, so clear the allowance for them.
            group.addTask {
                try await Self.$current.withValue(nil) {
                    guard let queue else { return try await read() }
                    return try await queue.run(for: caller) { try await read() }
                }
            }
            group.addTask {
                try await Task.sleep(for: limit)
                throw ReadRefusal.tookTooLong(limit: limit)
            }
            if let presence {
                group.addTask {
                    await presence()
                    throw CancellationError()
                }
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}

/// The reason why an expensive read did not complete.
package enum ReadRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case tookTooLong(limit: Duration)
    /// Too many reads wait already. `waiting` is their number, of this caller or of all callers.
    case tooMany(waiting: Int)

    package var description: String {
        switch self {
        case .tookTooLong(let limit):
            "reading the store took longer than \(limit.components.seconds) s and was cancelled; request less, or use "
                + "the command line, which has no limit"
        case .tooMany(let waiting): "\(waiting) long reads already wait for the store; retry later"
        }
    }
}
