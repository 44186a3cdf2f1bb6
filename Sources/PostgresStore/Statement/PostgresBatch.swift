import CPostgres
package import RelationalStore

/// Statements that are sent to the server together. All of them cost one round trip.
package struct PostgresBatch {
    fileprivate var entries: [(statement: SQLStatement, values: StatementValues)] = []

    package mutating func add(_ statement: SQLStatement, _ values: any PostgresValue...) {
        add(statement, values: values)
    }

    mutating func add(_ statement: SQLStatement, values: [any PostgresValue]) {
        entries.append((statement, StatementValues(values)))
    }
}

extension PostgresSession {
    /// A step of a batch. The server responds to each step, in order.
    private enum Step {
        case upkeep
        case prepare(PreparedStatements.Key)
        case statement
    }

    /// Sends a batch, and returns the results in the order of the statements. If a statement fails, its error is
    /// thrown, and later statements are not executed.
    package func pipeline(_ fill: (inout PostgresBatch) throws -> Void) throws -> [PostgresRows] {
        let (rows, failure) = try pipelineUntilFailure(fill)
        if let failure { throw failure }
        return rows
    }

    /// Sends a batch whose first results are useful even if a later statement fails. Returns the results before the
    /// failure, and the error of the failed statement.
    func pipelineUntilFailure(
        _ fill: (inout PostgresBatch) throws -> Void
    ) throws -> (rows: [PostgresRows], failure: (any Error)?) {
        var batch = PostgresBatch()
        try fill(&batch)
        guard !batch.entries.isEmpty else { return ([], nil) }
        try link.prepareToSend()
        link.mayKeep = !isInTransaction
        guard PQenterPipelineMode(link.handle) == 1 else { throw link.failed(link.trouble) }
        var steps: [Step] = []
        for entry in batch.entries { try send(entry.statement, entry.values, &steps) }
        try link.sent(PQpipelineSync(link.handle))
        return try answers(to: steps)
    }

    private func send(_ statement: SQLStatement, _ values: StatementValues, _ steps: inout [Step]) throws {
        var name: String?
        if usesNames, statement.isKept {
            let key = PreparedStatements.Key(text: statement.text, types: values.types)
            switch prepared.find(key) {
            case .prepared(let known): name = known
            case .missing(let new, let evicted):
                if let evicted {
                    try link.sent(Self.send(link.handle, .once("DEALLOCATE \(evicted)"), StatementValues([]), nil))
                    steps.append(.upkeep)
                }
                try link.sent(
                    PQsendPrepare(link.handle, new, statement.text, Int32(values.types.count), values.types))
                steps.append(.prepare(key))
                prepared.add(key, name: new)
                name = new
            }
        }
        try link.sent(Self.send(link.handle, statement, values, name))
        steps.append(.statement)
    }

    private func answers(to steps: [Step]) throws -> (rows: [PostgresRows], failure: (any Error)?) {
        var rows: [PostgresRows] = []
        var fault: ServerFault?
        for step in steps {
            var isDone = false
            while let result = try link.next() {
                fault = fault ?? result.fault
                isDone = result.status == PGRES_COMMAND_OK || result.status == PGRES_TUPLES_OK
                if isDone, case .statement = step { rows.append(PostgresRows(result: result)) }
            }
            if !isDone, case .prepare(let key) = step { prepared.forget(key) }
        }
        while let result = try link.next() {
            if result.status == PGRES_PIPELINE_SYNC { break }
        }
        guard PQexitPipelineMode(link.handle) == 1 else { throw link.failed(link.trouble) }
        if let fault { return (rows, refusal(fault)) }
        link.mayKeep = false
        return (rows, nil)
    }
}
