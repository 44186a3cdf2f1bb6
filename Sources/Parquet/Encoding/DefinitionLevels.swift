/// The rows of a column that have a value. A column that is not nullable stores only their number.
struct DefinitionLevels {
    /// The bytes that the levels of a page take beside one bit per row: a length, and the headers of runs.
    static let overhead = 16

    private let isNullable: Bool
    private var levels: [UInt8] = []
    private(set) var count = 0
    private(set) var nullCount = 0

    init(isNullable: Bool) {
        self.isNullable = isNullable
    }

    mutating func append(isPresent: Bool) {
        count += 1
        guard isNullable else { return }
        levels.append(isPresent ? 1 : 0)
        if !isPresent { nullCount += 1 }
    }

    mutating func removeAll() {
        levels.removeAll(keepingCapacity: true)
        count = 0
        nullCount = 0
    }

    func isPresent(_ row: Int) -> Bool { !isNullable || levels[row] == 1 }

    /// Returns the number of rows that have a value.
    func presentCount(_ rows: Range<Int>) -> Int {
        guard nullCount > 0 else { return rows.count }
        var present = 0
        for row in rows { present += Int(levels[row]) }
        return present
    }

    /// Appends the levels of some rows as the beginning of a data page: their length and their encoding.
    func append(_ rows: Range<Int>, to bytes: inout [UInt8]) {
        guard isNullable else { return }
        var encoded: [UInt8] = []
        HybridEncoder.append(levels.span.extracting(rows), bitWidth: 1, to: &encoded)
        bytes.append(littleEndian: UInt32(encoded.count))
        bytes += encoded
    }
}
