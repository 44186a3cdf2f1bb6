import RelationalStore

/// What a transaction came to.
enum Finished<Value> {
    case committed(Value)
    /// The answer to its COMMIT did not come; with the error that says so.
    case unheard(Value, PostgresError)
}

/// By which a transaction is found again whose COMMIT was not answered.
///
/// The server remembers how each of its latest transactions ended. A crash makes it forget transactions that were not on disk
/// and give their numbers to others, also one that keeps its first process (`restart_after_crash`). A replica that took over
/// does so as well. So the number says something only while two facts prove that the server did not recover in between:
///
/// - its first process is the same
/// - its latest checkpoint is the same, since every recovery ends with one
///
/// Without both, the commit is ``Ending/forgotten``, and its caller decides by what the transaction wrote, or repeats what
/// may be repeated.
struct CommitMark: Hashable {
    enum Ending: Hashable {
        case committed
        /// Nothing of it was kept.
        case rolledBack
        case underWay
        /// The server may have recovered, or made a checkpoint, since: its number says nothing.
        case forgotten
    }

    /// The last statement of the text that begins a transaction.
    static let question = """
        SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text, checkpoint_lsn::text
        FROM pg_control_checkpoint()
        """
    /// The same for a user who may not ask for the checkpoint: its commits are ``Ending/forgotten`` when they are not answered.
    static let shortQuestion = "SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text, ''"
    /// Whether the user may ask ``question``.
    static let isAllowed = "SELECT has_function_privilege('pg_control_checkpoint()', 'EXECUTE')::text"

    let transaction: String
    let serverStart: String
    let checkpoint: String

    init(transaction: String, serverStart: String, checkpoint: String) {
        self.transaction = transaction
        self.serverStart = serverStart
        self.checkpoint = checkpoint
    }

    init(_ row: PostgresRow) throws {
        transaction = try row.text(0)
        serverStart = try row.text(1)
        checkpoint = try row.text(2)
    }

    func ending(_ db: PostgresSession) throws -> Ending {
        guard !checkpoint.isEmpty else { return .forgotten }
        let word =
            try db.first(
                """
                SELECT CASE WHEN pg_postmaster_start_time()::text = $2 AND checkpoint_lsn::text = $3
                    THEN pg_xact_status($1::text::xid8) END
                FROM pg_control_checkpoint()
                """, transaction, serverStart, checkpoint
            ) { try $0.textOrNil(0) } ?? nil
        return switch word {
        case "committed": .committed
        case "aborted": .rolledBack
        case "in progress": .underWay
        default: .forgotten
        }
    }
}
