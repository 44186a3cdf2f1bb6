/// FNV-1a of 64 bits: the same number for the same bytes on every machine and in every version. It tells texts apart
/// and spreads them; it is no protection against somebody who chooses the text.
package enum FNV1a {
    package static func hash(_ text: String) -> UInt64 { hash(bytes: text.utf8) }

    /// Inlined into its callers, some of which hash every field of an import.
    @inlinable
    package static func hash(bytes: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash
    }
}
