import COpenSSL

/// The value of `apns-id`: a UUID as 16 bytes, written 8-4-4-4-12 in lower case (`ProviderProtocol` section 4).
package struct PushID: Hashable, Sendable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The number of characters in the written form.
    package static let textCount = 36

    /// The 36 characters, as bytes.
    package var utf8: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.textCount) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            count = Self.textCount
        }
    }

    /// Writes the 36 characters to the front of `buffer`, which must have room for them.
    package func write(to buffer: UnsafeMutableRawBufferPointer) {
        var position = 0
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 {
                buffer[position] = UInt8(ascii: "-")
                position += 1
            }
            let word = index < 16 ? high : low
            buffer[position] = Hex.digit(UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (index % 16))) & 15)
            position += 1
        }
    }

    package var description: String { String(decoding: utf8, as: UTF8.self) }
}

/// Creates the `apns-id` of a delivery: a UUID version 5 (RFC 9562 section 5.5), the same on every attempt.
package struct PushIDSpace: Hashable, Sendable {
    private static let nameBytes = 3 * 8
    private static let namespaceBytes = 16

    package let namespace: PushID

    package init(namespace: PushID) {
        self.namespace = namespace
    }

    /// Returns the id of a delivery. The name is the three numbers, eight bytes each, big-endian. It takes less than a
    /// microsecond.
    package func id(run: Int64, device: Int64, generation: Int) -> PushID {
        let name = (
            namespace.high.bigEndian, namespace.low.bigEndian, run.bigEndian, device.bigEndian,
            Int64(generation).bigEndian
        )
        return withUnsafeBytes(of: name) { name in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(SHA_DIGEST_LENGTH)) { digest in
                // This cannot fail: the low-level SHA-1 needs no state that could be missing.
                _ = fanfare_sha1(name.baseAddress, Self.namespaceBytes + Self.nameBytes, digest.baseAddress)
                let digest = UnsafeRawBufferPointer(digest)
                let high = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
                let low = UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                return PushID(
                    high: high & 0xffff_ffff_ffff_0fff | 0x5000,
                    low: low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
            }
        }
    }
}
