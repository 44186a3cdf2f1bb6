/// The 64-bit FNV-1a hash: the same number for the same bytes on every machine and in every version. It is suitable
/// for hash tables and samples, but does not resist deliberate collisions.
package enum FNV1a {
    package static func hash(_ text: String) -> UInt64 { hash(bytes: text.utf8.span) }

    /// Takes a span and is not generic. Imports hash every field, and generic code is not specialised across modules.
    package static func hash(bytes: Span<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in bytes.indices { hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01B3 }
        return hash
    }
}

/// The SplitMix64 generator: the same numbers from the same seed, on every machine and in every version.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension Int {
    /// The number with a separator between thousands: `1,234,567`.
    package var grouped: String {
        let digits = Array(String(magnitude))
        let groups = stride(from: digits.count, to: 0, by: -3).map { String(digits[Swift.max(0, $0 - 3)..<$0]) }
        return (self < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
    }

    /// Returns the number with its noun: `1 device`, `1,234 devices`.
    ///
    /// - Parameter nouns: the plural of the noun. `nil` means `noun` with an s.
    package func counted(_ noun: String, _ nouns: String? = nil) -> String {
        "\(grouped) \(self == 1 ? noun : nouns ?? "\(noun)s")"
    }
}

extension Double {
    /// A percentage as text, with one decimal if it is not zero: `16.7 %`.
    package var percentText: String {
        let tenths = (self * 10).rounded()
        guard tenths.magnitude < 1e15 else { return "\(self) %" }
        let whole = Int64(tenths)
        return whole % 10 == 0 ? "\(whole / 10) %" : "\(whole / 10).\(abs(whole % 10)) %"
    }
}

/// The rounding of all shares that people read.
package enum RoundedShare {
    /// Returns a share from 0 to 1 in percent. Only none of a whole is 0 %, and only the whole is 100 %. A share close
    /// to them is rounded to the nearest other number.
    package static func percent(_ share: Double, decimals: Int) -> Double {
        let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
        let steps = (share * 100 * scale).rounded()
        guard share > 0, share < 1 else { return steps / scale }
        return min(max(steps, 1), 100 * scale - 1) / scale
    }
}

extension Int {
    /// Returns the share of a whole in percent with one decimal. Empty if the whole is not positive.
    package func share(of whole: Int) -> String {
        guard whole > 0 else { return "" }
        let tenths = (RoundedShare.percent(Double(self) / Double(whole), decimals: 1) * 10).rounded()
        return "\(Int(tenths) / 10).\(Int(tenths) % 10) %"
    }
}
