import Model
import RelationalStore
import Store

/// The numbers that the store has assigned, by table.
enum GivenNumbers {
    static func highest(_ db: PostgresSession) throws -> [String: Int64] {
        let pairs = try TransferTable.numbered.map { table in
            let given = try db.first(
                "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')), 0)", table
            ) { try $0.int64(0) }
            let used = try db.first(.once("SELECT coalesce(max(id), 0) FROM \"\(table)\"")) { try $0.int64(0) }
            return (table, max(given ?? 0, used ?? 0))
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    static func set(_ numbers: [String: Int64], _ db: PostgresSession) throws {
        for (table, number) in numbers where number > 0 {
            _ = try db.rows("SELECT setval(pg_get_serial_sequence($1, 'id'), $2)", table, number)
        }
    }

    static func skip(_ gap: RestoreGap, _ db: PostgresSession) throws {
        let highest = try highest(db)
        try set(Dictionary(uniqueKeysWithValues: highest.map { ($0, $1 + gap.leap(of: $0)) }), db)
    }
}
