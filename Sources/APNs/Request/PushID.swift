/// The value of `apns-id`: a UUID as 16 bytes, written 8-4-4-4-12 in lower case (`ProviderProtocol` section 4).
package struct PushID: Hashable, Sendable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Characters in the written form.
    package static let textCount = 36

    /// The 36 characters, as bytes.
    package var utf8: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.textCount) { buffer, count in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            count = Self.textCount
        }
    }

    /// Writes the 36 characters to the front of `buffer`, which must have room for them.
    func write(to buffer: UnsafeMutableRawBufferPointer) {
        var position = 0
        for index in 0..<32 {
            if index == 8 || index == 12 || index == 16 || index == 20 {
                buffer[position] = UInt8(ascii: "-")
                position += 1
            }
            let word = index < 16 ? high : low
            buffer[position] = HexDigit.lowerCase(UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (index % 16))) & 15)
            position += 1
        }
    }

    package var description: String { String(decoding: utf8, as: UTF8.self) }
}
