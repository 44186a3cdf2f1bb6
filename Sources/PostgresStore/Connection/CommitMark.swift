/// What a transaction came to.
enum Finished<Value> {
    case committed(Value)
    /// The answer to its COMMIT did not come; with the error that says so.
    case unheard(Value, PostgresError)
}

/// By which a transaction is found again whose COMMIT was not answered.
///
/// The server remembers how each of its latest transactions ended. After a crash, and on a replica that took over, the same
/// number may be another transaction's: only the very server process that gave it can be asked.
struct CommitMark: Hashable {
    enum Ending: Hashable {
        case committed
        /// Nothing of it was kept.
        case rolledBack
        case underWay
        /// The server that knew it is gone.
        case forgotten
    }

    /// The last statement of the text that begins a transaction.
    static let question = "SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text"

    let transaction: String
    let serverStart: String

    init(transaction: String, serverStart: String) {
        self.transaction = transaction
        self.serverStart = serverStart
    }

    init(_ row: PostgresRow) throws {
        transaction = try row.text(0)
        serverStart = try row.text(1)
    }

    func ending(_ db: PostgresSession) throws -> Ending {
        let word =
            try db.first(
                """
                SELECT CASE WHEN pg_postmaster_start_time()::text = $2 THEN pg_xact_status($1::text::xid8) END
                """, transaction, serverStart
            ) { try $0.textOrNil(0) } ?? nil
        return switch word {
        case "committed": .committed
        case "aborted": .rolledBack
        case "in progress": .underWay
        default: .forgotten
        }
    }
}
