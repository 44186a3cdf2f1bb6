import CPostgres
package import RelationalStore

/// One connection, passed to a closure that runs on the connection's thread. Every call blocks that thread until the
/// server has responded, the call's time is over, or its task is cancelled.
///
/// The values of `$1`, `$2` and so on are passed in order. Rows are read by column number. Errors are
/// ``PostgresError`` or `CancellationError`.
package final class PostgresSession {
    let link: PostgresLink
    /// Whether statements are prepared. `false` behind a pooler that does not support prepared statements.
    let usesNames: Bool
    /// The clock that its statements use.
    let time: StoreTime
    /// The mark of the current or the latest transaction, if that transaction may write.
    var mark: CommitMark?
    /// Whether this user may read the server's latest checkpoint; `nil` until the first transaction that writes.
    var mayAskForCheckpoint: Bool?
    var prepared = PreparedStatements()
    var isInTransaction = false

    init(_ link: PostgresLink, usesNames: Bool, time: StoreTime) {
        self.link = link
        self.usesNames = usesNames
        self.time = time
    }

    /// The address without its password, for errors.
    package var server: String { link.server }

    /// Returns all rows of the result together.
    package func rows(_ statement: SQLStatement, _ values: any PostgresValue...) throws -> PostgresRows {
        try rows(statement, values: values)
    }

    /// Executes the statement, and returns the number of rows that it changed or selected.
    @discardableResult
    package func execute(_ statement: SQLStatement, _ values: any PostgresValue...) throws -> Int {
        try rows(statement, values: values).affected
    }

    /// Reads every row of the result.
    package func all<Value>(
        _ statement: SQLStatement, _ values: any PostgresValue..., read: (PostgresRow) throws -> Value
    ) throws -> [Value] {
        try rows(statement, values: values).map(read)
    }

    /// Reads the first row; returns `nil` if there is none.
    package func first<Value>(
        _ statement: SQLStatement, _ values: any PostgresValue..., read: (PostgresRow) throws -> Value
    ) throws -> Value? {
        try rows(statement, values: values).first.map(read)
    }

    /// Reads the rows as they arrive, for results that are too large for memory.
    package func each(
        _ statement: SQLStatement, _ values: any PostgresValue..., body: (PostgresRow) throws -> Void
    ) throws {
        try each(statement, values: values, body: body)
    }

    package func each(
        _ statement: SQLStatement, values: [any PostgresValue], body: (PostgresRow) throws -> Void
    ) throws {
        try send(statement, values)
        PQsetSingleRowMode(link.handle)
        var fault: ServerFault?
        while let result = try link.next() {
            fault = fault ?? result.fault
            guard let row = PostgresRows(result: result).first else { continue }
            do { try body(row) } catch {
                link.abandon()
                throw error
            }
        }
        if let fault { throw refusal(fault) }
        link.mayKeep = false
    }

    /// Runs one text with one or several statements and no values, for statements that the extended protocol does
    /// not accept.
    package func run(_ text: String) throws {
        try runText(text)
    }

    /// The number of statements that are prepared on this connection.
    var preparedCount: Int { prepared.count }

    /// Returns all rows as ``rows(_:_:)`` does, for a list of values that is built at run time.
    package func rows(_ statement: SQLStatement, values: [any PostgresValue]) throws -> PostgresRows {
        try send(statement, values)
        return PostgresRows(result: try answer())
    }

    private func send(_ statement: SQLStatement, _ values: [any PostgresValue]) throws {
        try link.prepareToSend()
        let values = StatementValues(values)
        let name = try preparedName(statement, values.types)
        link.mayKeep = !isInTransaction
        try link.sent(Self.send(link.handle, statement, values, name))
    }

    /// Sends one statement, by its name if it has one.
    static func send(
        _ handle: OpaquePointer, _ statement: SQLStatement, _ values: StatementValues, _ name: String?
    ) -> Int32 {
        let count = Int32(values.types.count)
        return values.withPointers { addresses, lengths, formats in
            guard let name else {
                return PQsendQueryParams(
                    handle, statement.text, count, values.types, addresses, lengths, formats, 1)
            }
            return PQsendQueryPrepared(handle, name, count, addresses, lengths, formats, 1)
        }
    }

    /// Returns the name under which the server has prepared the statement. Prepares it if necessary. Returns `nil`
    /// if the statement is sent unprepared.
    private func preparedName(_ statement: SQLStatement, _ types: [UInt32]) throws -> String? {
        guard usesNames, statement.isKept else { return nil }
        let key = PreparedStatements.Key(text: statement.text, types: types)
        switch prepared.find(key) {
        case .prepared(let name): return name
        case .missing(let name, let evicted):
            if let evicted { try runText("DEALLOCATE \(evicted)") }
            link.mayKeep = false
            try link.sent(PQsendPrepare(link.handle, name, statement.text, Int32(types.count), types))
            _ = try answer()
            prepared.add(key, name: name)
            return name
        }
    }

    /// Runs several statements in one text by the simple protocol. Returns the result of the last one.
    @discardableResult
    func runText(_ text: String) throws -> PostgresResult {
        try link.prepareToSend()
        link.mayKeep = !isInTransaction
        try link.sent(PQsendQuery(link.handle, text))
        return try answer()
    }

    /// Reads the whole response to one text. Returns the last result, or throws the first error.
    private func answer() throws -> PostgresResult {
        var last: PostgresResult?
        var fault: ServerFault?
        while let result = try link.next() {
            guard ![PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH].contains(result.status) else {
                link.abandon()
                throw PostgresError.failed(server: link.server, reason: "COPY is called by copyIn and copyOut alone")
            }
            fault = fault ?? result.fault
            last = result
        }
        if let fault { throw refusal(fault) }
        guard let last else { throw link.lost(link.trouble) }
        link.mayKeep = false
        return last
    }

    /// Returns the server's error as ``PostgresError``. An error that ends the connection marks the connection as
    /// lost.
    func refusal(_ fault: ServerFault) -> any Error {
        if fault.kind == .outcomeUnknown {
            return PostgresError.outcomeUnknown(server: link.server, reason: fault.message)
        }
        guard fault.isFatal || fault.kind == .connectionLost || PQstatus(link.handle) == CONNECTION_BAD else {
            link.mayKeep = false
            return PostgresError.refused(fault, server: link.server)
        }
        return link.lost(fault.message)
    }
}
