/// The address of one installation at APNs: 32 to 100 opaque bytes. Printing one shows its last 8 characters only.
package struct DeviceToken: Hashable, Sendable, CustomStringConvertible {
    package static let byteCounts = 32...100

    package let bytes: [UInt8]

    /// Nil when the length is outside ``byteCounts``.
    package init?(bytes: [UInt8]) {
        guard Self.byteCounts.contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// Hex digits of either case; `<`, `>` and blanks around or between them are tolerated, as old apps print them.
    package init?(hex text: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(32)
        var high: UInt8?
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: " "): continue
            default: break
            }
            guard let digit = Self.value(ofHexDigit: character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard high == nil else { return nil }
        self.init(bytes: bytes)
    }

    /// Lower-case hex, whole: for the request path and for exports asked for by name, never for logs or pages.
    package var hex: String {
        String(hexOf: bytes)
    }

    /// The last 8 characters, for logs and pages.
    package var redacted: String { "…" + String(hexOf: Array(bytes.suffix(4))) }

    package var description: String { redacted }

    private static func value(ofHexDigit character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension String {
    fileprivate init(hexOf bytes: [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        var characters: [UInt8] = []
        characters.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            characters.append(digits[Int(byte >> 4)])
            characters.append(digits[Int(byte & 15)])
        }
        self.init(decoding: characters, as: UTF8.self)
    }
}
