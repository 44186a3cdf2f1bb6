/// Conversions between hex digits and bytes.
package enum Hex {
    /// Returns the bytes of hex digits in either case. `nil` for any other text, and for an odd number of digits.
    package static func bytes(of text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { digits in
            guard digits.count.isMultiple(of: 2) else { return nil }
            var isHex = true
            let bytes = [UInt8](unsafeUninitializedCapacity: digits.count / 2) { room, count in
                count = digits.count / 2
                isHex = decode(UnsafeRawBufferPointer(digits), into: UnsafeMutableRawBufferPointer(room))
            }
            return isHex ? bytes : nil
        }
    }

    /// Decodes an even number of digits. `room` must hold half as many bytes. Returns false if a character is not a
    /// hex digit.
    package static func decode(_ digits: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Bool {
        var bad: UInt8 = 0
        for index in 0..<digits.count / 2 {
            let high = values[Int(digits[2 * index])]
            let low = values[Int(digits[2 * index + 1])]
            bad |= high | low
            room[index] = high << 4 | low & 15
        }
        return bad < 16
    }

    package static func text(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { text($0) } }

    package static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(unsafeUninitializedCapacity: bytes.count * 2) { room in
            for (index, byte) in bytes.enumerated() {
                room[2 * index] = digit(byte >> 4)
                room[2 * index + 1] = digit(byte & 15)
            }
            return bytes.count * 2
        }
    }

    /// Returns the lower-case digit of a value below 16.
    @inlinable package static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// The value of each digit. 16 for any other character.
    private static let values: [UInt8] = (0..<256).map { character in
        switch UInt8(character) {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(character) - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt8(character) - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt8(character) - UInt8(ascii: "A") + 10
        default: 16
        }
    }
}
