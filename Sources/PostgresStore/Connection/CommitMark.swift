import RelationalStore

/// How a transaction ended.
enum Finished<Value> {
    case committed(Value)
    /// The response to its COMMIT did not arrive. The error says why.
    case unheard(Value, PostgresError)
}

/// Identifies a transaction, to find its outcome if its COMMIT gets no response.
///
/// The server remembers the outcomes of its latest transactions. After a crash it has lost the transactions that
/// were not on disk, and assigns their numbers to others. This also happens if its first process survives the crash
/// (`restart_after_crash`), and to a replica that takes over. A number is therefore valid only while two facts show
/// that the server has not recovered from a crash since:
///
/// - its first process is the same
/// - its latest checkpoint is the same, since every recovery ends with one
///
/// If one of them is missing, the outcome is ``Ending/forgotten``. Its caller then decides by what the transaction
/// wrote, or repeats the transaction if that is harmless.
struct CommitMark: Hashable {
    enum Ending: Hashable {
        case committed
        /// Nothing of the transaction was kept.
        case rolledBack
        case underWay
        /// The server may have recovered since, or has completed a checkpoint. The transaction's number proves
        /// nothing.
        case forgotten
    }

    /// The query for the mark. It is the last statement of the text that begins a transaction.
    static let question = """
        SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text, checkpoint_lsn::text
        FROM pg_control_checkpoint()
        """
    /// The same query for a user who may not read the checkpoint. A commit of that user that gets no response is
    /// ``Ending/forgotten``.
    static let shortQuestion = "SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text, ''"
    /// Reads whether the user may run ``question``.
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
