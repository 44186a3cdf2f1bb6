package import Model

/// A value that can be read from a column, in PostgreSQL's binary form.
package protocol PostgresReadable {
    /// The column types from which the value can be read. A column of an untyped stream is not checked.
    static var readableOIDs: [UInt32] { get }
    /// Creates the value. Returns `nil` if the bytes do not encode one. `bytes` is `nil` for NULL.
    init?(postgres bytes: UnsafeRawBufferPointer?)
}

/// A row, whose columns are numbered from 0. The requested type must fit the column. Only the `OrNil` methods accept
/// NULL.
package protocol PostgresFields {
    /// Returns the bytes of a column, or `nil` for NULL. They are valid as long as the row is.
    func field(_ column: Int) -> UnsafeRawBufferPointer?
    /// Returns the type of a column, or 0 if it is unknown.
    func type(_ column: Int) -> UInt32
    var columns: Int { get }
}

extension PostgresFields {
    package func value<Value: PostgresReadable>(
        _ column: Int, as kind: Value.Type = Value.self
    ) throws(PostgresError) -> Value {
        guard (0..<columns).contains(column) else { throw unexpected(column, kind, "not there") }
        let type = type(column)
        guard type == 0 || Value.readableOIDs.contains(type) else {
            throw unexpected(column, kind, "of the type with OID \(type)")
        }
        let bytes = field(column)
        guard let value = Value(postgres: bytes) else {
            throw unexpected(column, kind, bytes.map { "\($0.count) bytes of something else" } ?? "NULL")
        }
        return value
    }

    /// Reads all columns from the first one on: `let (id, name) = try row.values(Int64.self, String?.self)`.
    package func values<each Value: PostgresReadable>(
        _ kinds: repeat (each Value).Type
    ) throws(PostgresError) -> (repeat each Value) {
        var column = -1
        func next<Next: PostgresReadable>(_ kind: Next.Type) throws(PostgresError) -> Next {
            column += 1
            return try value(column, as: kind)
        }
        return (repeat try next(each kinds))
    }

    package func isNull(_ column: Int) -> Bool { field(column) == nil }
    package func int64(_ column: Int) throws(PostgresError) -> Int64 { try value(column) }
    package func int64OrNil(_ column: Int) throws(PostgresError) -> Int64? { try value(column) }
    package func int(_ column: Int) throws(PostgresError) -> Int { Int(try int64(column)) }
    package func intOrNil(_ column: Int) throws(PostgresError) -> Int? { try int64OrNil(column).map { Int($0) } }
    package func bool(_ column: Int) throws(PostgresError) -> Bool { try value(column) }
    package func boolOrNil(_ column: Int) throws(PostgresError) -> Bool? { try value(column) }
    package func double(_ column: Int) throws(PostgresError) -> Double { try value(column) }
    package func text(_ column: Int) throws(PostgresError) -> String { try value(column) }
    package func textOrNil(_ column: Int) throws(PostgresError) -> String? { try value(column) }
    package func bytes(_ column: Int) throws(PostgresError) -> [UInt8] { try value(column) }
    package func bytesOrNil(_ column: Int) throws(PostgresError) -> [UInt8]? { try value(column) }
    package func timestamp(_ column: Int) throws(PostgresError) -> Timestamp { try value(column) }
    package func timestampOrNil(_ column: Int) throws(PostgresError) -> Timestamp? { try value(column) }
    package func int64s(_ column: Int) throws(PostgresError) -> [Int64] { try value(column) }
    package func texts(_ column: Int) throws(PostgresError) -> [String] { try value(column) }

    private func unexpected(_ column: Int, _ kind: Any.Type, _ found: String) -> PostgresError {
        .unexpectedValue(column: column, expected: "\(kind)", found: found)
    }
}

/// Whole numbers of any width are read as `bigint`, so that a `count(*)` and a `smallint` are both Int64.
extension Int64: PostgresReadable {
    package static var readableOIDs: [UInt32] { [20, 23, 21] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes else { return nil }
        switch bytes.count {
        case 8: self = Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: self = Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 2: self = Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        default: return nil
        }
    }
}

extension Int: PostgresReadable {
    package static var readableOIDs: [UInt32] { Int64.readableOIDs }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let value = Int64(postgres: bytes) else { return nil }
        self = Int(value)
    }
}

extension Int32: PostgresReadable {
    package static var readableOIDs: [UInt32] { [23] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes, bytes.count == 4 else { return nil }
        self = Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))
    }
}

extension Bool: PostgresReadable {
    package static var readableOIDs: [UInt32] { [16] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes, bytes.count == 1 else { return nil }
        self = bytes[0] != 0
    }
}

extension Double: PostgresReadable {
    package static var readableOIDs: [UInt32] { [701] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes, bytes.count == 8 else { return nil }
        self.init(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)))
    }
}

/// Reads `text`, `varchar`, `name`, `json`, and a literal of unknown type.
extension String: PostgresReadable {
    package static var readableOIDs: [UInt32] { [25, 1043, 19, 114, 705] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes else { return nil }
        self.init(decoding: bytes, as: UTF8.self)
    }
}

extension Timestamp: PostgresReadable {
    package static var readableOIDs: [UInt32] { [20] }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let milliseconds = Int64(postgres: bytes) else { return nil }
        self.init(milliseconds: milliseconds)
    }
}

extension Optional: PostgresReadable where Wrapped: PostgresReadable {
    package static var readableOIDs: [UInt32] { Wrapped.readableOIDs }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes else {
            self = .none
            return
        }
        guard let wrapped = Wrapped(postgres: bytes) else { return nil }
        self = .some(wrapped)
    }
}

/// A type whose arrays are read as one value.
package protocol PostgresReadableElement {
    static var readableArrayOIDs: [UInt32] { get }
    static func elements(_ bytes: UnsafeRawBufferPointer) -> [Self]?
}

extension PostgresReadableElement where Self: PostgresReadable {
    /// Reads at most one dimension. A NULL among the elements is read as `nil`, if the element type allows it.
    package static func elements(_ bytes: UnsafeRawBufferPointer) -> [Self]? {
        var reader = FieldReader(bytes)
        guard let dimensions = reader.int32(), reader.int32() != nil, reader.int32() != nil else { return nil }
        guard dimensions > 0 else { return [] }
        guard dimensions == 1, let count = reader.int32(), reader.int32() != nil else { return nil }
        var elements: [Self] = []
        elements.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let field = reader.field(), let element = Self(postgres: field.bytes) else { return nil }
            elements.append(element)
        }
        return elements
    }
}

extension Int64: PostgresReadableElement {
    package static var readableArrayOIDs: [UInt32] { [1016, 1007, 1005] }
}

extension Int32: PostgresReadableElement {
    package static var readableArrayOIDs: [UInt32] { [1007] }
}

extension String: PostgresReadableElement {
    package static var readableArrayOIDs: [UInt32] { [1009] }
}

extension UInt8: PostgresReadableElement {
    package static var readableArrayOIDs: [UInt32] { [17] }
    package static func elements(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? { Array(bytes) }
}

extension Array: PostgresReadableElement where Element == UInt8 {
    package static var readableArrayOIDs: [UInt32] { [1001] }
}

extension Optional: PostgresReadableElement where Wrapped: PostgresReadableElement & PostgresReadable {
    package static var readableArrayOIDs: [UInt32] { Wrapped.readableArrayOIDs }
}

extension Array: PostgresReadable where Element: PostgresReadableElement {
    package static var readableOIDs: [UInt32] { Element.readableArrayOIDs }

    package init?(postgres bytes: UnsafeRawBufferPointer?) {
        guard let bytes, let elements = Element.elements(bytes) else { return nil }
        self = elements
    }
}

/// Reads lengths and values in network order, and never past the end.
struct FieldReader {
    struct Field {
        let bytes: UnsafeRawBufferPointer?
    }

    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func int32() -> Int32? { integer() }
    mutating func int16() -> Int16? { integer() }

    private mutating func integer<Value: FixedWidthInteger>() -> Value? {
        let size = MemoryLayout<Value>.size
        guard bytes.count - offset >= size else { return nil }
        defer { offset += size }
        return Value(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
    }

    /// Reads a length and its bytes, which are `nil` for NULL. Returns `nil` at the end.
    mutating func field() -> Field? {
        guard let length = int32() else { return nil }
        guard length >= 0 else { return Field(bytes: nil) }
        guard bytes.count - offset >= Int(length) else { return nil }
        defer { offset += Int(length) }
        return Field(bytes: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + Int(length))]))
    }
}
