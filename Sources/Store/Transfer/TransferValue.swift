import Model

/// A value that is copied from one store to another, in a form that is the same in all stores.
package enum TransferValue: Hashable, Sendable, Codable {
    case null
    /// A number, or a boolean as 0 or 1.
    case integer(Int64)
    /// A text, or a JSON object with its keys in order.
    case text(String)
    case bytes([UInt8])

    package static func integer(_ value: Int64?) -> TransferValue { value.map { .integer($0) } ?? .null }
    package static func text(_ value: String?) -> TransferValue { value.map { .text($0) } ?? .null }
    package static func bytes(_ value: [UInt8]?) -> TransferValue { value.map { .bytes($0) } ?? .null }

    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    package var text: String? { if case .text(let value) = self { value } else { nil } }

    /// Appends a kind, a length and the bytes, so that different rows give different bytes.
    fileprivate func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(0)
        case .integer(let value): Self.append(1, UInt64(bitPattern: value), to: &bytes)
        case .text(let value):
            Self.append(2, UInt64(value.utf8.count), to: &bytes)
            bytes.append(contentsOf: value.utf8)
        case .bytes(let value):
            Self.append(3, UInt64(value.count), to: &bytes)
            bytes.append(contentsOf: value)
        }
    }

    private static func append(_ kind: UInt8, _ number: UInt64, to bytes: inout [UInt8]) {
        bytes.append(kind)
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }
}

/// Converts the JSON objects of devices into the form in which they are copied. Each store keeps them in its own form.
package struct TransferObjects {
    private static let keptMax = 10_000

    private var known: [String: String] = [:]

    package init() {}

    /// Returns the form for the copy. Throws if the text is not a JSON object of texts.
    package mutating func canonical(_ json: String) throws -> String {
        if let known = known[json] { return known }
        let attributes: [String: String] = try StoredJSON.value(json)
        let text = StoredJSON.object(attributes)
        if known.count >= Self.keptMax { known.removeAll() }
        known[json] = text
        return text
    }
}

/// The checksums of a table's contents. If they are equal in two stores, the stores have the same rows.
package struct TableProof: Codable, Hashable, Sendable {
    package let table: String
    package private(set) var rows = 0
    /// The sums of the integer columns, by name. A sum beyond the largest number wraps around.
    package private(set) var sums: [String: Int64] = [:]
    /// A hash over all rows in the order of their keys.
    package private(set) var hash: UInt64 = 0

    /// Creates the checksums of an empty table.
    package init(of table: TransferTable) { self.table = table.name }

    package mutating func add(_ row: [TransferValue], of table: TransferTable) {
        rows += 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(row.count * 12)
        for (column, value) in zip(table.columns, row) {
            value.append(to: &bytes)
            if case .integer(let number) = value { sums[column.name, default: 0] &+= number }
        }
        // Mix the hash after each row, so that it depends on the order of the rows.
        var mixed = (hash ^ FNV1a.hash(bytes: bytes.span)) &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        hash = mixed ^ (mixed >> 31)
    }

    /// Returns the difference from another proof of the same table, in words; `nil` if there is none.
    package func difference(from other: TableProof) -> String? {
        guard self != other else { return nil }
        guard rows == other.rows else { return "\(rows.counted("row")) here, \(other.rows) there" }
        let columns = Set(sums.keys).union(other.sums.keys).filter { sums[$0] != other.sums[$0] }.sorted()
        return columns.isEmpty
            ? "equal numbers of rows, but different contents"
            : "different checksums of " + columns.joined(separator: ", ")
    }
}
