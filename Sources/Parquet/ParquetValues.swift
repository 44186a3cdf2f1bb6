/// The values of one column in a batch of rows. `nil` is a null.
package enum ParquetValues: Sendable {
    case booleans([Bool?])
    case int32s([Int32?])
    /// The values of an `int64`, `timestamp` or `decimal` column.
    case int64s([Int64?])
    case doubles([Double?])
    /// The values of a `string` or `enumeration` column.
    case strings([String?])
    case bytes([[UInt8]?])

    package var count: Int {
        switch self {
        case .booleans(let values): values.count
        case .int32s(let values): values.count
        case .int64s(let values): values.count
        case .doubles(let values): values.count
        case .strings(let values): values.count
        case .bytes(let values): values.count
        }
    }

    /// The row of the first null.
    var firstNull: Int? {
        switch self {
        case .booleans(let values): values.firstIndex { $0 == nil }
        case .int32s(let values): values.firstIndex { $0 == nil }
        case .int64s(let values): values.firstIndex { $0 == nil }
        case .doubles(let values): values.firstIndex { $0 == nil }
        case .strings(let values): values.firstIndex { $0 == nil }
        case .bytes(let values): values.firstIndex { $0 == nil }
        }
    }
}
