/// One delivery of a lease, as packed into the lease's row: 16 bytes, little-endian.
package struct LeaseEntry: Hashable {
    package static let byteCount = 16

    package var device: Int64
    /// The number of the lease among those of the delivery.
    package var number: Int
    package var generation: Int

    package init(device: Int64, number: Int, generation: Int) {
        self.device = device
        self.number = number
        self.generation = generation
    }

    package static func pack(_ entries: [LeaseEntry]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(entries.count * byteCount)
        for entry in entries {
            bytes.append(littleEndian: UInt64(bitPattern: entry.device))
            bytes.append(littleEndian: UInt32(clamping: entry.number))
            bytes.append(littleEndian: UInt32(clamping: entry.generation))
        }
        return bytes
    }

    /// Ignores trailing bytes that are shorter than an entry.
    package static func unpack(_ bytes: [UInt8]) -> [LeaseEntry] {
        (0..<bytes.count / byteCount).map { index in
            let start = index * byteCount
            return LeaseEntry(
                device: Int64(bitPattern: UInt64(littleEndian: bytes[start..<start + 8])),
                number: Int(UInt32(littleEndian: bytes[start + 8..<start + 12])),
                generation: Int(UInt32(littleEndian: bytes[start + 12..<start + 16])))
        }
    }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger & UnsignedInteger>(littleEndian number: Number) {
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    init(littleEndian bytes: ArraySlice<UInt8>) {
        self = bytes.reversed().reduce(0) { $0 << 8 | Self($1) }
    }
}
