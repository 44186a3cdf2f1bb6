/// A column of a Parquet file.
package struct ParquetColumn: Equatable, Sendable {
    package enum Kind: CaseIterable, Sendable {
        case boolean
        case int32
        case int64
        case double
        /// A text in UTF-8. It is dictionary encoded if that makes the file smaller.
        case string
        /// A text with few distinct values. It is always dictionary encoded, and readers see a text.
        case enumeration
        /// The milliseconds since 1970 in UTC.
        case timestamp
        /// A decimal number of 18 digits, 6 of them after the point, as a count of millionths.
        case decimal
        case bytes
    }

    package let name: String
    package let kind: Kind
    package let isNullable: Bool

    package init(_ name: String, _ kind: Kind, isNullable: Bool = false) {
        self.name = name
        self.kind = kind
        self.isNullable = isNullable
    }
}

extension ParquetColumn {
    static let decimalPrecision = 18
    static let decimalScale = 6
    /// The largest magnitude of a decimal number of 18 digits.
    static let decimalLimit: Int64 = 999_999_999_999_999_999

    /// Throws if the values cannot be stored in this column.
    func check(_ values: ParquetValues) throws(ParquetError) {
        guard kind.accepts(values) else { throw .wrongKind(column: name) }
        if !isNullable, let row = values.firstNull { throw .unexpectedNull(column: name, row: row) }
        guard kind == .decimal, case .int64s(let numbers) = values else { return }
        let row = numbers.firstIndex { ($0 ?? 0) > Self.decimalLimit || ($0 ?? 0) < -Self.decimalLimit }
        if let row { throw .decimalOutOfRange(column: name, row: row) }
    }
}

extension ParquetColumn.Kind {
    fileprivate func accepts(_ values: ParquetValues) -> Bool {
        switch (self, values) {
        case (.boolean, .booleans), (.int32, .int32s), (.double, .doubles), (.bytes, .bytes): true
        case (.int64, .int64s), (.timestamp, .int64s), (.decimal, .int64s): true
        case (.string, .strings), (.enumeration, .strings): true
        default: false
        }
    }
}
