import GRDB
import GRDBSQLite

/// The SQL function `byte_at(bytes, place)` of the writing connection. It returns one byte as a number, and NULL if
/// there is no such place. Places count from 0.
///
/// SQLite's own way, `unicode(substr(...))`, allocates a value for each call. A statement that runs it for each row
/// would spend a fifth of its time there.
enum ByteAt {
    static func add(to db: Database) throws {
        let code = sqlite3_create_function_v2(
            db.sqliteConnection, "byte_at", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, nil,
            { context, _, arguments in
                guard let bytes = arguments?[0], let place = arguments?[1] else { return }
                let index = sqlite3_value_int64(place)
                guard index >= 0, index < Int64(sqlite3_value_bytes(bytes)), let first = sqlite3_value_blob(bytes)
                else { return sqlite3_result_null(context) }
                sqlite3_result_int(context, Int32(first.load(fromByteOffset: Int(index), as: UInt8.self)))
            }, nil, nil, nil)
        guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}
