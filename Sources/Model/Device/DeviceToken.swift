/// The address of one installation at APNs: 32 to 100 opaque bytes. Printing one shows its last 8 characters only.
package struct DeviceToken: Hashable, Sendable, CustomStringConvertible {
    package static let byteCounts = 32...100

    package let bytes: [UInt8]

    /// Nil when the length is outside ``byteCounts``.
    package init?(bytes: [UInt8]) {
        guard Self.byteCounts.contains(bytes.count) else { return nil }
        self.bytes = bytes
    }

    /// Why a text is no token.
    package enum HexFault: Error, Hashable, Sendable {
        case notHex
        case oddCount
        /// So many bytes are outside ``byteCounts``.
        case byteCount(Int)
    }

    /// Hex digits of either case; `<`, `>` and blanks around or between them are tolerated, as old apps print them.
    package init?(hex text: some StringProtocol) {
        do { try self.init(hexDigits: Array(text.utf8)[...]) } catch { return nil }
    }

    /// As ``init(hex:)``, from the bytes of the text: an import reads one a line.
    package init(hexDigits text: ArraySlice<UInt8>) throws(HexFault) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var high: UInt8 = 0
        var isHalf = false
        for character in text {
            let digit = Self.digits[Int(character)]
            if digit < 16 {
                if isHalf { bytes.append(high << 4 | digit) }
                high = digit
                isHalf.toggle()
            } else if digit == Self.notHex {
                throw .notHex
            }
        }
        guard !isHalf else { throw .oddCount }
        guard Self.byteCounts.contains(bytes.count) else { throw .byteCount(bytes.count) }
        self.bytes = bytes
    }

    /// Lower-case hex, whole: for the request path and for exports asked for by name, never for logs or pages.
    package var hex: String {
        String(hexOf: bytes)
    }

    /// The last 8 characters, for logs and pages.
    package var redacted: String { "…" + String(hexOf: Array(bytes.suffix(4))) }

    package var description: String { redacted }

    private static let notHex: UInt8 = 255
    private static let filler: UInt8 = 254

    /// The value of each byte as a hex digit, ``filler`` for what a token may hold besides, ``notHex`` for the rest.
    private static let digits: [UInt8] = (0...255).map { (byte: UInt8) in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: " "): filler
        default: notHex
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
