/// Reads the few JSON forms an error answer has, without building a tree. Each method moves past what it took, or
/// stays where it was.
struct JSONScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func take(_ character: UInt8) -> Bool {
        skipBlanks()
        guard position < bytes.count, bytes[position] == character else { return false }
        position += 1
        return true
    }

    mutating func string() -> String? {
        let start = position
        guard take(UInt8(ascii: "\"")) else { return nil }
        var text: [UInt8] = []
        while position < bytes.count {
            let character = bytes[position]
            position += 1
            switch character {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = escape() else {
                    position = start
                    return nil
                }
                text += escaped
            default: text.append(character)
            }
        }
        position = start
        return nil
    }

    /// A whole number, also in quotes or with a fraction, which is dropped.
    mutating func integer() -> Int64? {
        let start = position
        let isQuoted = take(UInt8(ascii: "\""))
        skipBlanks()
        let digits = bytes[position...].prefix { $0 == UInt8(ascii: "-") || isDigit($0) }
        position = digits.endIndex
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position = bytes[(position + 1)...].prefix(while: isDigit).endIndex
        }
        if let value = Int64(String(decoding: digits, as: UTF8.self)), !isQuoted || take(UInt8(ascii: "\"")) {
            return value
        }
        position = start
        return nil
    }

    /// Passes any value, nested ones included. False at the end of the text.
    mutating func skipValue() -> Bool {
        var depth = 0
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                guard string() != nil else { return false }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return true }
                depth -= 1
            case UInt8(ascii: ",") where depth == 0: return true
            default: break
            }
            position += 1
        }
        return false
    }

    /// What follows a backslash, in UTF-8.
    private mutating func escape() -> [UInt8]? {
        guard position < bytes.count else { return nil }
        let character = bytes[position]
        position += 1
        switch character {
        case UInt8(ascii: "n"): return [0x0a]
        case UInt8(ascii: "r"): return [0x0d]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0c]
        case UInt8(ascii: "u"):
            guard position + 4 <= bytes.count else { return nil }
            let digits = String(decoding: bytes[position..<position + 4], as: UTF8.self)
            guard let unit = UInt16(digits, radix: 16) else { return nil }
            position += 4
            // A lone half of a surrogate pair becomes the replacement character.
            return Array(String(decoding: [unit], as: UTF16.self).utf8)
        default: return [character]
        }
    }

    private mutating func skipBlanks() {
        while position < bytes.count, isBlank(bytes[position]) { position += 1 }
    }

    private func isBlank(_ character: UInt8) -> Bool {
        character == 0x20 || character == 0x09 || character == 0x0a || character == 0x0d
    }

    private func isDigit(_ character: UInt8) -> Bool {
        character >= UInt8(ascii: "0") && character <= UInt8(ascii: "9")
    }
}
