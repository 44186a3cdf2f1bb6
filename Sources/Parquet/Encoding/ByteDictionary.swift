/// The distinct byte strings of a column chunk, in the order of their first use. It compares bytes: the equality of
/// `String` would merge texts that differ in their normalization.
struct ByteDictionary {
    /// The values in plain encoding, as the dictionary page holds them.
    private(set) var encoded: [UInt8] = []
    /// The bytes of each value in `encoded`.
    private(set) var ranges: [Range<Int>] = []
    private var hashes: [UInt32] = []
    /// The number of each value plus 1, at a place that its hash tells. 0 is a free place.
    private var slots = [UInt32](repeating: 0, count: 256)
    private let seed: UInt64
    private let byteLimit: Int

    /// - Parameter seed: a random number, so that no input can be made to collide.
    init(byteLimit: Int, seed: UInt64) {
        self.byteLimit = byteLimit
        self.seed = seed
    }

    /// The number of distinct values.
    var count: Int { ranges.count }

    /// Returns the number of the value, which is added if it is new. Returns `nil` if it would pass the limit.
    mutating func index(of value: Span<UInt8>) -> UInt32? {
        let hash = ByteHash.hash(value, seed: seed)
        let mask = slots.count - 1
        var slot = Int(hash) & mask
        while slots[slot] != 0 {
            let entry = slots[slot] - 1
            if hashes[Int(entry)] == hash, isEqual(value, at: ranges[Int(entry)]) { return entry }
            slot = (slot + 1) & mask
        }
        guard encoded.count + 4 + value.count <= byteLimit else { return nil }
        let entry = UInt32(ranges.count)
        slots[slot] = entry + 1
        add(value, hash)
        return entry
    }

    private mutating func add(_ value: Span<UInt8>, _ hash: UInt32) {
        encoded.append(littleEndian: UInt32(truncatingIfNeeded: value.count))
        ranges.append(encoded.count..<(encoded.count + value.count))
        encoded.append(copying: value)
        hashes.append(hash)
        if 2 * count > slots.count { grow() }
    }

    private mutating func grow() {
        slots = [UInt32](repeating: 0, count: 4 * slots.count)
        let mask = slots.count - 1
        for (entry, hash) in hashes.enumerated() {
            var slot = Int(hash) & mask
            while slots[slot] != 0 { slot = (slot + 1) & mask }
            slots[slot] = UInt32(entry) + 1
        }
    }

    private func isEqual(_ value: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard value.count == range.count else { return false }
        for index in value.indices where value[index] != encoded[range.lowerBound + index] { return false }
        return true
    }
}

/// A seeded hash of bytes, 8 at a time.
private enum ByteHash {
    static func hash(_ bytes: Span<UInt8>, seed: UInt64) -> UInt32 {
        var hash = mix(seed ^ UInt64(bytes.count), 0x9E37_79B9_7F4A_7C15)
        var index = 0
        while index < bytes.count {
            let end = min(index + 8, bytes.count)
            var part: UInt64 = 0
            for position in index..<end { part = part << 8 | UInt64(bytes[position]) }
            hash = mix(hash ^ part, 0xD6E8_FEB8_6659_FD93)
            index = end
        }
        return UInt32(truncatingIfNeeded: hash ^ hash >> 32)
    }

    private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
