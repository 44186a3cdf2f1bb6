import GRDB
import Model
import RelationalStore
import Store
import GRDBSQLite

/// A compiled statement driven through SQLite's own functions, for loops over every row of an audience. In such loops,
/// GRDB's cost per row (arguments, rows, observation) is several times SQLite's.
///
/// Use it only inside one access to `db`, on its thread. Bound values stay bound after ``reset()``.
struct RowStatement {
    typealias Parameter = Int32

    private let statement: Statement
    private let handle: OpaquePointer
    private let connection: OpaquePointer?

    /// Compiles the statement once per connection and keeps it.
    init(_ db: Database, _ sql: String) throws {
        statement = try db.cachedStatement(sql: sql)
        handle = statement.sqliteStatement
        connection = db.sqliteConnection
        sqlite3_reset(handle)
    }

    /// Compiles the statement for this use and binds all arguments.
    init(_ db: Database, _ sql: String, arguments: StatementArguments) throws {
        statement = try db.makeStatement(sql: sql)
        try statement.setArguments(arguments)
        handle = statement.sqliteStatement
        connection = db.sqliteConnection
    }

    /// Compiles the statement, and keeps it if `SQLStatement.isKept` is true.
    init(_ db: Database, _ statement: SQLStatement) throws {
        self.statement =
            statement.isKept ? try db.cachedStatement(sql: statement.text) : try db.makeStatement(sql: statement.text)
        handle = self.statement.sqliteStatement
        connection = db.sqliteConnection
        sqlite3_reset(handle)
    }

    var sql: String { statement.sql }

    /// Returns the index of a named parameter (`:run`), or 0 if the statement does not have it. Binding to 0 is an
    /// error.
    func parameter(_ name: String) -> Parameter {
        sqlite3_bind_parameter_index(handle, name)
    }

    func bind(_ value: Int64, _ parameter: Parameter) throws {
        try check(sqlite3_bind_int64(handle, parameter, value))
    }

    func bind(_ value: Int64?, _ parameter: Parameter) throws {
        if let value { try bind(value, parameter) } else { try bindNull(parameter) }
    }

    func bindNull(_ parameter: Parameter) throws {
        try check(sqlite3_bind_null(handle, parameter))
    }

    func bind(_ value: Double?, _ parameter: Parameter) throws {
        guard let value else { return try bindNull(parameter) }
        try check(sqlite3_bind_double(handle, parameter, value))
    }

    func bind(_ text: String?, _ parameter: Parameter) throws {
        guard var text else { return try bindNull(parameter) }
        let code = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                // An empty buffer may have no address, which would bind NULL.
                characters.baseAddress.map {
                    sqlite3_bind_text(handle, parameter, $0, Int32(characters.count), Self.copied)
                } ?? sqlite3_bind_text(handle, parameter, "", 0, Self.copied)
            }
        }
        try check(code)
    }

    func bind(_ bytes: [UInt8], _ parameter: Parameter) throws {
        try check(
            bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { sqlite3_bind_blob(handle, parameter, $0, Int32(bytes.count), Self.copied) }
                    ?? sqlite3_bind_zeroblob(handle, parameter, 0)
            })
    }

    /// Returns `true` if there is a row to read, `false` at the end.
    func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code)
        }
    }

    /// Runs a statement without reading rows, and resets it for the next values.
    func run() throws {
        let code = sqlite3_step(handle)
        guard code == SQLITE_DONE || code == SQLITE_ROW else {
            let error = failure(code)
            sqlite3_reset(handle)
            throw error
        }
        sqlite3_reset(handle)
    }

    /// Resets the statement. A statement that is not reset keeps its snapshot, so always reset it.
    func reset() {
        sqlite3_reset(handle)
    }

    /// The number of rows changed by the last ``run()`` on this connection.
    var changes: Int { Int(sqlite3_changes(connection)) }

    /// The storage class of a value.
    enum Storage: Hashable {
        case integer, real, text, blob, null

        /// The description for an error message.
        var summary: String {
            switch self {
            case .integer: "a whole number"
            case .real: "a number with a fraction"
            case .text: "a text"
            case .blob: "bytes"
            case .null: "missing"
            }
        }
    }

    func storage(_ column: Int32) -> Storage {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    enum Integer { case found(Int64), null, other }

    /// The column's value, for reading its kind and its contents with one look-up. SQLite allows this only on the
    /// thread of the connection.
    private func value(_ column: Int32) -> OpaquePointer? { sqlite3_column_value(handle, column) }

    func integer(_ column: Int32) -> Integer {
        let value = value(column)
        return switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: .found(sqlite3_value_int64(value))
        case SQLITE_NULL: .null
        default: .other
        }
    }

    func double(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    func int(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }
    func int64OrNil(_ column: Int32) -> Int64? {
        let value = value(column)
        return sqlite3_value_type(value) == SQLITE_NULL ? nil : sqlite3_value_int64(value)
    }

    /// Returns any value as text; `nil` for NULL.
    func text(_ column: Int32) -> String? {
        withText(column) { bytes in bytes.map { String(decoding: $0, as: UTF8.self) } }
    }

    /// Calls `body` with the bytes of a text without a copy; `nil` for NULL. The bytes are invalid after the next step.
    func withText<Value>(_ column: Int32, _ body: (UnsafeBufferPointer<UInt8>?) -> Value) -> Value {
        let value = value(column)
        guard let bytes = sqlite3_value_text(value) else { return body(nil) }
        return body(UnsafeBufferPointer(start: bytes, count: Int(sqlite3_value_bytes(value))))
    }

    /// Returns the FNV-1a hash of a text, without a copy; 0 for NULL.
    func textHash(_ column: Int32) -> UInt64 {
        withText(column) { $0.map { FNV1a.hash(bytes: $0.span) } ?? 0 }
    }

    func bytes(_ column: Int32) -> [UInt8] {
        let value = value(column)
        guard let address = sqlite3_value_blob(value) else { return [] }
        return Array(UnsafeRawBufferPointer(start: address, count: Int(sqlite3_value_bytes(value))))
    }

    /// SQLITE_TRANSIENT, which C defines as a cast of -1. It tells SQLite to copy the text.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw failure(code) }
    }

    private func failure(_ code: Int32) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code), message: connection.map { String(cString: sqlite3_errmsg($0)) },
            sql: statement.sql)
    }
}
