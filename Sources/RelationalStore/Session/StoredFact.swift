import Store

/// Reads and writes facts about the whole store. A fact is JSON under a key in the table `meta`.
package enum StoredFact {
    package static func value<Value: Decodable>(_ key: String, _ db: some SQLSession) throws -> Value? {
        try db.first("SELECT value FROM meta WHERE key = $1", key) { try $0.bytes(0) }
            .map { try StoredJSON.value(String(decoding: $0, as: UTF8.self)) }
    }

    package static func set(_ key: String, _ value: some Encodable, _ db: some SQLSession) throws {
        try db.execute(
            "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key,
            Array(try StoredJSON.text(value).utf8))
    }

    package static func remove(_ key: String, _ db: some SQLSession) throws {
        try db.execute("DELETE FROM meta WHERE key = $1", key)
    }
}
