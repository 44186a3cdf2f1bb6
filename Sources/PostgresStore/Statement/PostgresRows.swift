import CPostgres

/// All rows of one result, in the client's memory. Only the thread that sent the statement may use them.
package struct PostgresRows: RandomAccessCollection {
    let result: PostgresResult

    package var startIndex: Int { 0 }
    package var endIndex: Int { Int(PQntuples(result.handle)) }
    package subscript(row: Int) -> PostgresRow { PostgresRow(result: result, row: Int32(row)) }

    /// The number of rows that an INSERT, UPDATE, DELETE or COPY wrote or deleted, or that a SELECT returned.
    package var affected: Int { result.affected }
}

package struct PostgresRow: PostgresFields {
    fileprivate let result: PostgresResult
    fileprivate let row: Int32

    package var columns: Int { Int(PQnfields(result.handle)) }

    package func type(_ column: Int) -> UInt32 { PQftype(result.handle, Int32(column)) }

    package func field(_ column: Int) -> UnsafeRawBufferPointer? {
        guard PQgetisnull(result.handle, row, Int32(column)) == 0 else { return nil }
        let length = Int(PQgetlength(result.handle, row, Int32(column)))
        return UnsafeRawBufferPointer(start: PQgetvalue(result.handle, row, Int32(column)), count: length)
    }
}

/// Owns libpq's result of one statement.
final class PostgresResult {
    let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    deinit { PQclear(handle) }

    var status: ExecStatusType { PQresultStatus(handle) }

    /// The command and its row count, such as `COMMIT`, `ROLLBACK` or `UPDATE 3`.
    var command: String { PQcmdStatus(handle).map { String(cString: $0) } ?? "" }

    var affected: Int { PQcmdTuples(handle).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The error of the statement; `nil` if it succeeded.
    var fault: ServerFault? {
        guard [PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR].contains(status) else { return nil }
        return ServerFault(
            sqlstate: Self.text(fanfare_pq_sqlstate(handle)) ?? "",
            message: Self.text(fanfare_pq_message(handle)) ?? Self.text(PQresultErrorMessage(handle)) ?? "no message",
            detail: Self.text(fanfare_pq_detail(handle)), constraint: Self.text(fanfare_pq_constraint(handle)),
            isFatal: [nil, "FATAL", "PANIC"].contains(Self.text(fanfare_pq_severity(handle))))
    }

    private static func text(_ text: UnsafePointer<CChar>?) -> String? {
        guard let text else { return nil }
        return MessageText(String(cString: text)).line
    }
}

/// A message of the server or of libpq in one line.
struct MessageText {
    let line: String

    init(_ text: String) {
        let hints = ["LOCATION:", "Is the server running", "This probably means", "before or while processing"]
        line = text.split(whereSeparator: \.isNewline)
            .map { $0.trimmingPrefix(while: \.isWhitespace) }
            .filter { line in !line.isEmpty && !hints.contains { line.hasPrefix($0) } }
            .joined(separator: "; ")
    }
}
