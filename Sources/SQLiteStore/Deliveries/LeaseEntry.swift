/// One delivery of a lease, as it is packed into the lease's row: 16 bytes, little endian.
struct LeaseEntry: Hashable {
    static let byteCount = 16

    var device: Int64
    var attempt: Int
    var generation: Int

    static func pack(_ entries: [LeaseEntry]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(entries.count * byteCount)
        for entry in entries {
            withUnsafeBytes(of: entry.device.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt32(clamping: entry.attempt).littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: UInt32(clamping: entry.generation).littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// A rest shorter than an entry is left out.
    static func unpack(_ bytes: [UInt8]) -> [LeaseEntry] {
        bytes.withUnsafeBytes { bytes in
            (0..<bytes.count / byteCount).map { index in
                let start = index * byteCount
                let device = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: Int64.self))
                let attempt = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self))
                let generation = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))
                return LeaseEntry(device: device, attempt: Int(attempt), generation: Int(generation))
            }
        }
    }
}
