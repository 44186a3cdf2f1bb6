enum HexDigit {
    /// The character for a value below 16.
    static func lowerCase(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
