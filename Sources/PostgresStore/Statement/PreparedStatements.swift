import Model

/// The statements that a connection has prepared. The least recently used one is evicted first.
struct PreparedStatements {
    struct Key: Hashable {
        let text: String
        let types: [UInt32]

        /// The name, a hash of the statement. Behind a pooler that does not support prepared statements, a
        /// connection also has the statements of other clients. So a name must mean the same statement for all
        /// clients.
        var name: String {
            let types = types.map { String($0) }.joined(separator: ",")
            return "fanfare_" + String(FNV1a.hash("\(types) \(text)"), radix: 16)
        }
    }

    enum Found: Equatable {
        case prepared(name: String)
        /// Prepare the statement under this name, after `DEALLOCATE` of the evicted one.
        case missing(name: String, evicted: String?)
    }

    private struct Entry {
        let name: String
        var usedAt: Int
    }

    private let limit: Int
    private var entries: [Key: Entry] = [:]
    private var uses = 0

    init(limit: Int = PostgresLimits.preparedStatementsMax) { self.limit = limit }

    var count: Int { entries.count }

    mutating func find(_ key: Key) -> Found {
        uses += 1
        if let name = entries[key]?.name {
            entries[key]?.usedAt = uses
            return .prepared(name: name)
        }
        var evicted: String?
        if entries.count >= limit, let oldest = entries.min(by: { $0.value.usedAt < $1.value.usedAt }) {
            evicted = oldest.value.name
            entries[oldest.key] = nil
        }
        return .missing(name: key.name, evicted: evicted)
    }

    /// Removes a statement that the server did not accept.
    mutating func forget(_ key: Key) { entries[key] = nil }

    /// Adds a statement that the server has prepared, or is about to prepare.
    mutating func add(_ key: Key, name: String) {
        entries[key] = Entry(name: name, usedAt: uses)
    }
}
