/// Remembers what a piece of text became, for columns with few different values. A fixed number of places; a piece
/// that falls on a taken one replaces it.
struct ByteCache<Value> {
    private static var placesCount: Int { 512 }

    private struct Entry {
        var key: [UInt8]
        var value: Value
    }

    private var entries: [Entry?] = Array(repeating: nil, count: placesCount)

    /// The value for these bytes, made now unless it is remembered.
    mutating func value(_ bytes: [UInt8], _ range: Range<Int>, make: (ArraySlice<UInt8>) -> Value) -> Value {
        let index = Self.place(of: bytes, range)
        if let entry = entries[index], Self.isEqual(entry.key, bytes, range) { return entry.value }
        let value = make(bytes[range])
        entries[index] = Entry(key: Array(bytes[range]), value: value)
        return value
    }

    /// FNV-1a: good enough for a few hundred places.
    private static func place(of bytes: [UInt8], _ range: Range<Int>) -> Int {
        var hash: UInt32 = 2_166_136_261
        for index in range { hash = (hash ^ UInt32(bytes[index])) &* 16_777_619 }
        return Int((hash ^ (hash >> 16)) & UInt32(placesCount - 1))
    }

    private static func isEqual(_ key: [UInt8], _ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard key.count == range.count else { return false }
        for index in key.indices where key[index] != bytes[range.lowerBound + index] { return false }
        return true
    }
}
