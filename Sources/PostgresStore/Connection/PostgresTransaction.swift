import Foundation

/// The promises of a transaction, and its time limit.
package struct PostgresTransaction: Sendable {
    package enum Isolation: String, Sendable {
        /// Each statement sees what was committed before it. A condition on a locked row is evaluated again.
        case readCommitted = "READ COMMITTED"
        /// One snapshot for all statements.
        case repeatableRead = "REPEATABLE READ"
        case serializable = "SERIALIZABLE"
    }

    package var isolation: Isolation
    package var isReadOnly: Bool
    /// Whether the transaction is on disk when the call returns. If not, a power failure may lose the latest
    /// transactions, but never a part of one.
    package var isDurable: Bool
    package var limit: Duration
    /// The name of the transaction on the server.
    private var activity: String?

    /// For changes that are reported to a caller, that must be on disk before a push is sent, or that record
    /// outcomes.
    package static let durable = PostgresTransaction(isolation: .readCommitted, isReadOnly: false, isDurable: true)
    /// For writes that a power failure may undo, such as heartbeats, imports, and all batches of a freeze but the last.
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

    /// Returns the same transaction under a name that other sessions find in `pg_stat_activity`.
    func named(_ activity: String?) -> PostgresTransaction {
        var copy = self
        copy.activity = activity
        return copy
    }

    /// Turns synchronous commits on if they are off or local for the user or the database. A stricter setting stays.
    private static let durably = """
        SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
        """

    private static let quickly = "SET LOCAL synchronous_commit = off"

    /// The settings of a transaction that writes and therefore holds locks. A takeover ends the transaction by its
    /// name. The TCP timeout is also the client's, so the server drops a dead client as fast as the client drops a
    /// dead server.
    private var endable: String {
        let name = activity.map { "SET LOCAL application_name = '\($0.filter { $0 != "'" && $0 != "\\" })'; " } ?? ""
        return name + "SET LOCAL tcp_user_timeout = \(PostgresLimits.unansweredSeconds * 1000); "
    }

    /// Returns the statements that begin the transaction. The settings are local to it, because a pooler hands the
    /// connection to another client afterwards. They replace the user's own limits, which would end a wait for a lock
    /// or a long statement too early. JIT compilation is off: it costs more than it saves in statements that
    /// do little with each of millions of rows.
    func begin(asking question: String) -> String {
        let milliseconds = Int((limit / .seconds(1) + PostgresLimits.serverGraceSeconds) * 1000)
        let idleSeconds = isReadOnly ? PostgresLimits.idleReaderSeconds : PostgresLimits.idleWriterSeconds
        let idle = Int(min(limit / .seconds(1), idleSeconds) * 1000)
        // Never READ WRITE: it would override a server that is set to read only.
        return """
            BEGIN ISOLATION LEVEL \(isolation.rawValue)\(isReadOnly ? " READ ONLY" : "");
            SET LOCAL statement_timeout = \(min(milliseconds, Int(Int32.max)));
            SET LOCAL lock_timeout = 0;
            SET LOCAL jit = off;
            SET LOCAL idle_in_transaction_session_timeout = \(max(idle, 1000));
            \(isReadOnly ? "" : endable + (isDurable ? Self.durably : Self.quickly) + "; " + question)
            """
    }
}

extension PostgresSession {
    /// Runs `body` between BEGIN and COMMIT, with a ROLLBACK if `body` throws. Throws
    /// ``PostgresError/outcomeUnknown(server:reason:)`` if COMMIT gets no response.
    package func transaction<Value>(_ options: PostgresTransaction, _ body: () throws -> Value) throws -> Value {
        try begin(options)
        switch try finish(body) {
        case .committed(let value): return value
        case .unheard(_, let error): throw error
        }
    }

    /// Runs `body` and commits, after ``begin(_:)``.
    func finish<Value>(_ body: () throws -> Value) throws -> Finished<Value> {
        do {
            let value = try body()
            do { try commit() } catch let error as PostgresError {
                guard case .outcomeUnknown = error else { throw error }
                // The server may say so on a connection that stays open.
                rollBack()
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

    /// Returns the query for the mark. Checks only once per connection whether the user may run the full query.
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
        // A COMMIT is short, even if the limit of the transaction is long. If the server stopped responding now, the
        // long limit would block all other writes.
        link.call = link.call.atMost(PostgresLimits.callTime)
        let result = try committing()
        // The response to COMMIT is ROLLBACK after an error that `body` caught.
        guard result.command == "COMMIT" else {
            throw PostgresError.refused(
                ServerFault(sqlstate: "25P02", message: "the transaction had failed and was rolled back"),
                server: link.server)
        }
    }

    /// Commits without the time limit of the server, see ``PostgresLink/isCommitting``.
    private func committing() throws -> PostgresResult {
        link.isCommitting = true
        defer { link.isCommitting = false }
        do {
            return try runText("SET LOCAL statement_timeout = 0; COMMIT")
        } catch {
            // The transaction may have failed before its COMMIT.
            isInTransaction = true
            throw error
        }
    }

    /// Rolls back within a separate short time limit, whatever interrupted the call. If no response comes, the
    /// connection is closed, and the server rolls back automatically.
    private func rollBack() {
        defer { isInTransaction = false }
        guard isInTransaction, link.failure == nil else { return }
        link.call = PostgresCall(limit: .seconds(PostgresLimits.cancelSeconds))
        do { try runText("ROLLBACK") } catch { link.abandon() }
    }
}
