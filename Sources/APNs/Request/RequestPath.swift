/// The value of `:path`: `/3/device/` and the token in lower-case hex (`ProviderProtocol` section 4).
enum RequestPath {
    static let prefix: StaticString = "/3/device/"

    static func byteCount(tokenBytes: Int) -> Int {
        prefix.utf8CodeUnitCount + 2 * tokenBytes
    }

    /// Writes the path to the front of `buffer`, which must have room for ``byteCount(tokenBytes:)`` bytes.
    static func write(token: [UInt8], to buffer: UnsafeMutableRawBufferPointer) {
        var position = 0
        prefix.withUTF8Buffer { prefix in
            for character in prefix {
                buffer[position] = character
                position += 1
            }
        }
        for byte in token {
            buffer[position] = HexDigit.lowerCase(byte >> 4)
            buffer[position + 1] = HexDigit.lowerCase(byte & 15)
            position += 2
        }
    }
}
