/// A stored value that this version cannot read: the value is damaged, or a newer version wrote it.
package struct UnreadableValue: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// Returns `nil` for any other error.
    package init?(_ error: any Error) {
        switch error {
        case let error as UnreadableValue: self = error
        case is DecodingError: self.init("a stored value cannot be read: \(DecodingFault(error))")
        default: return nil
        }
    }
}

/// Lists of rows other than runs, see ``ListedRun``.
package enum ReadableRows {
    /// Reads the rows of a list, and leaves out each row with a value that cannot be read. So one such row never makes
    /// the list fail. Other errors are rethrown.
    package static func of<Row, Value>(
        _ rows: some Sequence<Row>, _ read: (Row) throws -> Value
    ) throws -> [Value] {
        try rows.compactMap { try value($0, read) }
    }

    /// Reads one row of a list; returns `nil` if a value of it cannot be read. Other errors are rethrown.
    package static func value<Row, Value>(_ row: Row, _ read: (Row) throws -> Value) throws -> Value? {
        do {
            return try read(row)
        } catch  where UnreadableValue(error) != nil {
            return nil
        }
    }

    /// Returns the value of the JSON, or `otherwise` if it cannot be read. Use it only for a value that is merely
    /// displayed.
    package static func value<Value: Decodable>(_ json: String?, otherwise: Value) -> Value {
        json.flatMap { try? StoredJSON.value($0) } ?? otherwise
    }
}
