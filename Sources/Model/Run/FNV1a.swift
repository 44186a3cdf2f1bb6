/// FNV-1a of 64 bits: the same number for the same text on every machine and in every version. It tells texts apart
/// and spreads them; it is no protection against somebody who chooses the text.
package enum FNV1a {
    package static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
