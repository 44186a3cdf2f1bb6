import COpenSSL

/// Makes the `apns-id` of a delivery: a UUID version 5 (RFC 9562 section 5.5), the same on every attempt.
package struct PushIDSpace: Hashable, Sendable {
    private static let nameBytes = 3 * 8
    private static let namespaceBytes = 16

    package let namespace: PushID

    package init(namespace: PushID) {
        self.namespace = namespace
    }

    /// The name is the three numbers, eight bytes each, big-endian. Takes a fraction of a microsecond.
    package func id(run: Int64, device: Int64, generation: Int) -> PushID {
        let name = (
            namespace.high.bigEndian, namespace.low.bigEndian, run.bigEndian, device.bigEndian,
            Int64(generation).bigEndian
        )
        return withUnsafeBytes(of: name) { name in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(SHA_DIGEST_LENGTH)) { digest in
                // Fails for no input: the low-level SHA-1 has no state that could be missing.
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
