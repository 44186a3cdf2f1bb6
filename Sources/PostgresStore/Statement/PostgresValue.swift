package import Model

/// A value for a parameter such as `$1`, in PostgreSQL's binary form. `nil` of an optional is NULL.
package protocol PostgresValue: Sendable {
    /// The type's OID (`pg_type`), which is the same on every server. It makes casts of `$1` unnecessary.
    static var oid: UInt32 { get }
    var isNull: Bool { get }
    func encode(to bytes: inout [UInt8])
}

extension PostgresValue {
    package var isNull: Bool { false }
}

/// A type whose arrays are passed as one value, for `unnest` and `= ANY`.
package protocol PostgresElement: Sendable {
    static var arrayOID: UInt32 { get }
    static func encode(_ elements: [Self], to bytes: inout [UInt8])
}

extension PostgresElement where Self: PostgresValue {
    /// Encodes an array of one dimension whose first index is 1. An empty array has no dimension.
    package static func encode(_ elements: [Self], to bytes: inout [UInt8]) {
        bytes.append(bigEndian: Int32(elements.isEmpty ? 0 : 1))
        bytes.append(bigEndian: Int32(elements.contains(where: \.isNull) ? 1 : 0))
        bytes.append(bigEndian: oid)
        guard !elements.isEmpty else { return }
        bytes.append(bigEndian: Int32(elements.count))
        bytes.append(bigEndian: Int32(1))
        for element in elements { bytes.appendField(element) }
    }
}

extension Int64: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 20 }
    package static var arrayOID: UInt32 { 1016 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
}

extension Int: PostgresValue, PostgresElement {
    package static var oid: UInt32 { Int64.oid }
    package static var arrayOID: UInt32 { Int64.arrayOID }
    package func encode(to bytes: inout [UInt8]) { bytes.append(bigEndian: Int64(self)) }
}

extension Int32: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 23 }
    package static var arrayOID: UInt32 { 1007 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
}

extension Int16: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 21 }
    package static var arrayOID: UInt32 { 1005 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
}

extension Bool: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 16 }
    package static var arrayOID: UInt32 { 1000 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(self ? 1 : 0) }
}

extension Double: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 701 }
    package static var arrayOID: UInt32 { 1022 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(bigEndian: bitPattern) }
}

/// The server refuses a text that contains NUL.
extension String: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 25 }
    package static var arrayOID: UInt32 { 1009 }
    package func encode(to bytes: inout [UInt8]) { bytes.append(contentsOf: utf8) }
}

/// In every table, a moment is a `bigint` of milliseconds UTC.
extension Timestamp: PostgresValue, PostgresElement {
    package static var oid: UInt32 { Int64.oid }
    package static var arrayOID: UInt32 { Int64.arrayOID }
    package func encode(to bytes: inout [UInt8]) { milliseconds.encode(to: &bytes) }
}

/// An array of bytes is `bytea`.
extension UInt8: PostgresElement {
    package static var arrayOID: UInt32 { 17 }
    package static func encode(_ elements: [UInt8], to bytes: inout [UInt8]) { bytes.append(contentsOf: elements) }
}

extension Array: PostgresValue where Element: PostgresElement {
    package static var oid: UInt32 { Element.arrayOID }
    package func encode(to bytes: inout [UInt8]) { Element.encode(self, to: &bytes) }
}

extension Array: PostgresElement where Element == UInt8 {
    package static var arrayOID: UInt32 { 1001 }
}

extension Optional: PostgresValue where Wrapped: PostgresValue {
    package static var oid: UInt32 { Wrapped.oid }
    package var isNull: Bool { self?.isNull ?? true }
    package func encode(to bytes: inout [UInt8]) { self?.encode(to: &bytes) }
}

extension Optional: PostgresElement where Wrapped: PostgresElement & PostgresValue {
    package static var arrayOID: UInt32 { Wrapped.arrayOID }
}

extension [UInt8] {
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }

    /// Appends the length of a value and the value, as in arrays and in a COPY.
    mutating func appendField(_ value: some PostgresValue) {
        guard !value.isNull else { return append(bigEndian: Int32(-1)) }
        let start = count
        append(bigEndian: Int32(0))
        value.encode(to: &self)
        let length = Int32(count - start - 4).bigEndian
        Swift.withUnsafeBytes(of: length) { length in
            for index in 0..<4 { self[start + index] = length[index] }
        }
    }
}

/// The values of one statement, one after the other in one buffer.
struct StatementValues {
    let types: [UInt32]
    private var bytes: [UInt8] = []
    /// The start and length of each value; NULL has the length -1.
    private var places: [(start: Int, length: Int32)] = []

    init(_ values: [any PostgresValue]) {
        types = values.map { type(of: $0).oid }
        places.reserveCapacity(values.count)
        for value in values {
            let start = bytes.count
            value.encode(to: &bytes)
            places.append((start, value.isNull ? -1 : Int32(bytes.count - start)))
        }
        // Ensure that the buffer has an address, even if all values are empty.
        bytes.append(0)
    }

    /// Passes addresses, lengths and formats to `body`, in the form that libpq expects. They are valid until `body`
    /// returns.
    func withPointers<Result>(
        _ body: ([UnsafePointer<CChar>?], [Int32], [Int32]) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { memory in
            let start = memory.bindMemory(to: CChar.self).baseAddress
            let addresses = places.map { place in place.length < 0 ? nil : start.map { $0 + place.start } }
            return body(addresses, places.map { max($0.length, 0) }, Array(repeating: 1, count: places.count))
        }
    }
}

/// The text of a JSON value, for a column of `jsonb`.
package struct JSONText: PostgresValue, PostgresElement {
    package static var oid: UInt32 { 3802 }
    package static var arrayOID: UInt32 { 3807 }
    private static let version: UInt8 = 1

    package let text: String

    package init(_ text: String) { self.text = text }

    package func encode(to bytes: inout [UInt8]) {
        bytes.append(Self.version)
        text.encode(to: &bytes)
    }
}
