/// The values of the format's enumeration of physical types.
enum PhysicalType: Int32 {
    case boolean = 0
    case int32 = 1
    case int64 = 2
    case double = 5
    case byteArray = 6
}

/// The older annotations of types, which some readers still need.
private enum ConvertedType: Int32 {
    case utf8 = 0
    case decimal = 5
    case timestampMillis = 9
}

extension ParquetColumn {
    var physicalType: PhysicalType {
        switch kind {
        case .boolean: .boolean
        case .int32: .int32
        case .int64, .timestamp, .decimal: .int64
        case .double: .double
        case .string, .enumeration, .bytes: .byteArray
        }
    }

    /// Writes the fields of the column's `SchemaElement`.
    func write(to writer: inout CompactWriter) {
        writer.field(1, physicalType.rawValue)
        writer.field(3, isNullable ? 1 : 0 as Int32)
        writer.field(4, name)
        switch kind {
        case .boolean, .int32, .int64, .double, .bytes: break
        case .string, .enumeration: writeText(to: &writer)
        case .timestamp: writeTimestamp(to: &writer)
        case .decimal: writeDecimal(to: &writer)
        }
    }

    private func writeText(to writer: inout CompactWriter) {
        writer.field(6, ConvertedType.utf8.rawValue)
        writer.field(10) { type in type.field(1) { _ in } }
    }

    private func writeTimestamp(to writer: inout CompactWriter) {
        writer.field(6, ConvertedType.timestampMillis.rawValue)
        writer.field(10) { type in
            type.field(8) { timestamp in
                // Adjusted to UTC, in milliseconds.
                timestamp.field(1, true)
                timestamp.field(2) { unit in unit.field(1) { _ in } }
            }
        }
    }

    private func writeDecimal(to writer: inout CompactWriter) {
        writer.field(6, ConvertedType.decimal.rawValue)
        writer.field(7, Int32(Self.decimalScale))
        writer.field(8, Int32(Self.decimalPrecision))
        writer.field(10) { type in
            type.field(5) {
                $0.field(1, Int32(Self.decimalScale))
                $0.field(2, Int32(Self.decimalPrecision))
            }
        }
    }
}
