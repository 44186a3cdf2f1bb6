import Model

/// Which statements a connection has prepared, the least recently used first to go.
struct PreparedStatements {
    struct Key: Hashable {
        let text: String
        let types: [UInt32]

        /// Made of its contents: behind a pooler that does not follow prepared statements a connection has those of others
        /// as well, and what one of them is called must not be another one here.
        var name: String {
            let types = types.map { String($0) }.joined(separator: ",")
            return "fanfare_" + String(FNV1a.hash("\(types) \(text)"), radix: 16)
        }
    }

    enum Found: Equatable {
        case prepared(name: String)
        /// To be prepared under this name, after `DEALLOCATE` of the other.
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

    /// The server did not take it.
    mutating func forget(_ key: Key) { entries[key] = nil }

    /// The server has it now.
    mutating func add(_ key: Key, name: String) {
        entries[key] = Entry(name: name, usedAt: uses)
    }
}
