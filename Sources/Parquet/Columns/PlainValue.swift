/// A value of fixed width, with its plain encoding and its order.
protocol PlainValue: BitwiseCopyable {
    static var bitWidth: Int { get }

    /// Returns the values of a batch if they are of this type.
    static func values(of batch: ParquetValues) -> [Self?]?

    /// Appends the values in plain encoding.
    static func append(_ values: [Self], to bytes: inout [UInt8])

    /// Whether statistics may hold the value.
    var isOrdered: Bool { get }
    func precedes(_ other: Self) -> Bool

    /// The value as the lowest of a column chunk, and as the highest.
    var asLowest: Self { get }
    var asHighest: Self { get }
}

extension PlainValue {
    var isOrdered: Bool { true }
    var asLowest: Self { self }
    var asHighest: Self { self }
}

extension Bool: PlainValue {
    static var bitWidth: Int { 1 }

    static func values(of batch: ParquetValues) -> [Bool?]? {
        if case .booleans(let values) = batch { values } else { nil }
    }

    static func append(_ values: [Bool], to bytes: inout [UInt8]) {
        let bits = values.map { $0 ? 1 : 0 as UInt8 }
        BitPacking.append(bits.span, bitWidth: 1, to: &bytes)
    }

    func precedes(_ other: Bool) -> Bool { !self && other }
}

extension Int32: PlainValue {
    static func values(of batch: ParquetValues) -> [Int32?]? {
        if case .int32s(let values) = batch { values } else { nil }
    }

    static func append(_ values: [Int32], to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: 4 * values.count) { output in
            for value in values {
                var bits = UInt32(bitPattern: value)
                for _ in 0..<4 {
                    output.append(UInt8(truncatingIfNeeded: bits))
                    bits >>= 8
                }
            }
        }
    }

    func precedes(_ other: Int32) -> Bool { self < other }
}

extension Int64: PlainValue {
    static func values(of batch: ParquetValues) -> [Int64?]? {
        if case .int64s(let values) = batch { values } else { nil }
    }

    static func append(_ values: [Int64], to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: 8 * values.count) { output in
            for value in values {
                var bits = UInt64(bitPattern: value)
                for _ in 0..<8 {
                    output.append(UInt8(truncatingIfNeeded: bits))
                    bits >>= 8
                }
            }
        }
    }

    func precedes(_ other: Int64) -> Bool { self < other }
}

extension Double: PlainValue {
    static var bitWidth: Int { 64 }

    static func values(of batch: ParquetValues) -> [Double?]? {
        if case .doubles(let values) = batch { values } else { nil }
    }

    static func append(_ values: [Double], to bytes: inout [UInt8]) {
        Int64.append(values.map { Int64(bitPattern: $0.bitPattern) }, to: &bytes)
    }

    var isOrdered: Bool { !isNaN }
    func precedes(_ other: Double) -> Bool { self < other }
    // A reader that looks for either zero must find both.
    var asLowest: Double { self == 0 ? -0.0 : self }
    var asHighest: Double { self == 0 ? 0.0 : self }
}
