import Foundation

/// What a transaction promises, and how long it may take.
package struct PostgresTransaction: Sendable {
    package enum Isolation: String, Sendable {
        /// Each statement sees what was committed before it; a condition on a locked row is looked at again.
        case readCommitted = "READ COMMITTED"
        /// One snapshot for all statements.
        case repeatableRead = "REPEATABLE READ"
        case serializable = "SERIALIZABLE"
    }

    package var isolation: Isolation
    package var isReadOnly: Bool
    /// On disk when the call returns. Otherwise a power loss may take the last of them, whole ones and none before them.
    package var isDurable: Bool
    package var limit: Duration
    /// The name of the transaction on the server.
    private var activity: String?

    /// For what somebody is told, and for what must be true before a push leaves.
    package static let durable = PostgresTransaction(isolation: .readCommitted, isReadOnly: false, isDurable: true)
    /// For outcomes: lost by a power failure they are doubtful, as after a crash.
    package static let quick = PostgresTransaction(isolation: .readCommitted, isReadOnly: false, isDurable: false)
    package static let reading = PostgresTransaction(isolation: .repeatableRead, isReadOnly: true, isDurable: false)

    package init(
        isolation: Isolation, isReadOnly: Bool, isDurable: Bool, limit: Duration = PostgresLimits.callTime
    ) {
        self.isolation = isolation
        self.isReadOnly = isReadOnly
        self.isDurable = isDurable
        self.limit = limit
    }

    package func within(_ limit: Duration) -> PostgresTransaction {
        var copy = self
        copy.limit = limit
        return copy
    }

    /// The same under a name that others find in `pg_stat_activity`.
    func named(_ activity: String?) -> PostgresTransaction {
        var copy = self
        copy.activity = activity
        return copy
    }

    /// Whatever is set for this user or database; more than the disk is not made less.
    private static let durably = """
        SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
        """

    private static let quickly = "SET LOCAL synchronous_commit = off"

    /// Of one that writes and so holds locks: by this name a takeover ends it, and a client that vanished from the network is
    /// given up as soon as one gives up a server.
    private var endable: String {
        let name = activity.map { "SET LOCAL application_name = '\($0.filter { $0 != "'" && $0 != "\\" })'; " } ?? ""
        return name + "SET LOCAL tcp_user_timeout = \(PostgresLimits.unansweredSeconds * 1000); "
    }

    /// Settings of this transaction alone: what a pooler hands to the next one must not have them. Statements that go through
    /// millions of rows do little with each: compiling them costs more than it saves.
    func begin(asking question: String) -> String {
        let milliseconds = Int((limit / .seconds(1) + PostgresLimits.serverGraceSeconds) * 1000)
        let idleSeconds = isReadOnly ? PostgresLimits.idleReaderSeconds : PostgresLimits.idleWriterSeconds
        let idle = Int(min(limit / .seconds(1), idleSeconds) * 1000)
        // Never READ WRITE: it would overrule a server that was set to read only.
        return """
            BEGIN ISOLATION LEVEL \(isolation.rawValue)\(isReadOnly ? " READ ONLY" : "");
            SET LOCAL statement_timeout = \(min(milliseconds, Int(Int32.max)));
            SET LOCAL jit = off;
            SET LOCAL idle_in_transaction_session_timeout = \(max(idle, 1000));
            \(isReadOnly ? "" : endable + (isDurable ? Self.durably : Self.quickly) + "; " + question)
            """
    }
}

extension PostgresSession {
    /// BEGIN, `body`, COMMIT; a ROLLBACK when `body` throws. ``PostgresError/outcomeUnknown(server:reason:)`` when the
    /// answer to COMMIT did not come.
    package func transaction<Value>(_ options: PostgresTransaction, _ body: () throws -> Value) throws -> Value {
        try begin(options)
        switch try finish(body) {
        case .committed(let value): return value
        case .unheard(_, let error): throw error
        }
    }

    /// What follows on ``begin(_:)``.
    func finish<Value>(_ body: () throws -> Value) throws -> Finished<Value> {
        do {
            let value = try body()
            do { try commit() } catch let error as PostgresError {
                guard case .outcomeUnknown = error else { throw error }
                return .unheard(value, error)
            }
            return .committed(value)
        } catch {
            rollBack()
            throw error
        }
    }

    func begin(_ options: PostgresTransaction) throws {
        guard !isInTransaction else { throw link.failed("a transaction within another") }
        isInTransaction = true
        mark = nil
        do {
            let question = try options.isReadOnly ? "" : markQuestion()
            let answer = PostgresRows(result: try runText(options.begin(asking: question)))
            if !options.isReadOnly { mark = try answer.first.map(CommitMark.init) }
        } catch {
            rollBack()
            throw error
        }
    }

    /// Asked once for a connection.
    private func markQuestion() throws -> String {
        let mayAsk =
            try mayAskForCheckpoint
            ?? (PostgresRows(result: runText(CommitMark.isAllowed)).first.map { try $0.text(0) } == "true")
        mayAskForCheckpoint = mayAsk
        return mayAsk ? CommitMark.question : CommitMark.shortQuestion
    }

    private func commit() throws {
        try link.prepareToSend()
        isInTransaction = false
        // However long the work may take, its COMMIT is short: a connection that falls silent here would hold up all other
        // writes for the time of the work.
        link.call = link.call.atMost(PostgresLimits.callTime)
        let result = try runText("COMMIT")
        // What a COMMIT is after an error that `body` kept to itself.
        guard result.command == "COMMIT" else {
            throw PostgresError.refused(
                ServerFault(sqlstate: "25P02", message: "the transaction had failed and was rolled back"),
                server: link.server)
        }
    }

    /// Whatever interrupts it, within its own short time. Without an answer the connection is of no more use, and the
    /// server rolls back by itself.
    private func rollBack() {
        defer { isInTransaction = false }
        guard isInTransaction, link.failure == nil else { return }
        link.call = PostgresCall(limit: .seconds(PostgresLimits.cancelSeconds))
        do { try runText("ROLLBACK") } catch { link.abandon() }
    }
}
