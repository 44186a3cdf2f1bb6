/// Reads one line of JSON Lines: an object of texts, numbers, booleans, lists of texts, and objects of such values. It
/// parses the bytes directly, and only as deeply as an import needs.
struct JSONLineReader {
    indirect enum Value {
        case null
        case boolean(Bool)
        /// A number as written.
        case number([UInt8])
        case text([UInt8])
        case list([Value])
        case object([Member])
    }

    struct Member {
        var key: [UInt8]
        var value: Value
    }

    private static let depthMax = 4
    private static let numberBytesMax = 64

    private let bytes: [UInt8]
    private var index: Int
    private let end: Int

    static func members(_ bytes: [UInt8], _ range: Range<Int>) throws(LineFault) -> [Member] {
        var line = JSONLineReader(bytes: bytes, index: range.lowerBound, end: range.upperBound)
        line.skipBlanks()
        guard line.take("{") else { throw LineFault(reason: "the line is not a JSON object") }
        let members = try line.members(depth: 1)
        line.skipBlanks()
        guard line.index == line.end else { throw LineFault(reason: "text after the JSON object") }
        return members
    }

    /// Returns the texts of a list. `nil` if the bytes are no list of texts.
    static func texts(_ bytes: [UInt8]) -> [String]? {
        guard bytes.first == UInt8(ascii: "[") else { return nil }
        var line = JSONLineReader(bytes: bytes, index: 1, end: bytes.count)
        guard let values = try? line.elements(depth: 1), line.index == line.end else { return nil }
        let texts = values.compactMap { value in
            if case .text(let bytes) = value { String(validating: bytes, as: UTF8.self) } else { nil }
        }
        return texts.count == values.count ? texts : nil
    }

    private init(bytes: [UInt8], index: Int, end: Int) {
        self.bytes = bytes
        self.index = index
        self.end = end
    }

    private mutating func members(depth: Int) throws(LineFault) -> [Member] {
        var members: [Member] = []
        skipBlanks()
        if take("}") { return members }
        repeat {
            skipBlanks()
            guard take("\"") else { throw fault("a key in quotes") }
            let key = try text()
            skipBlanks()
            guard take(":") else { throw fault("a colon") }
            members.append(Member(key: key, value: try value(depth: depth)))
            skipBlanks()
        } while take(",")
        guard take("}") else { throw fault("a comma or }") }
        return members
    }

    private mutating func value(depth: Int) throws(LineFault) -> Value {
        guard depth < Self.depthMax else { throw LineFault(reason: "JSON nested too deeply") }
        skipBlanks()
        guard index < end else { throw fault("a value") }
        switch bytes[index] {
        case UInt8(ascii: "\""):
            index += 1
            return .text(try text())
        case UInt8(ascii: "{"):
            index += 1
            return .object(try members(depth: depth + 1))
        case UInt8(ascii: "["):
            index += 1
            return .list(try elements(depth: depth + 1))
        case UInt8(ascii: "t") where take(word: "true"): return .boolean(true)
        case UInt8(ascii: "f") where take(word: "false"): return .boolean(false)
        case UInt8(ascii: "n") where take(word: "null"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw fault("a value")
        }
    }

    private mutating func elements(depth: Int) throws(LineFault) -> [Value] {
        var values: [Value] = []
        skipBlanks()
        if take("]") { return values }
        repeat {
            values.append(try value(depth: depth))
            skipBlanks()
        } while take(",")
        guard take("]") else { throw fault("a comma or ]") }
        return values
    }

    private mutating func number() throws(LineFault) -> [UInt8] {
        let start = index
        while index < end, Self.isOfNumber(bytes[index]) {
            index += 1
            guard index - start <= Self.numberBytesMax else {
                throw LineFault(reason: "a number has over \(Self.numberBytesMax) characters")
            }
        }
        return Array(bytes[start..<index])
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// Reads the rest of a text after its opening quote.
    private mutating func text() throws(LineFault) -> [UInt8] {
        var text: [UInt8] = []
        while index < end {
            let start = index
            while index < end, bytes[index] != UInt8(ascii: "\""), bytes[index] != UInt8(ascii: "\\") { index += 1 }
            text += bytes[start..<index]
            guard index < end else { break }
            index += 1
            if bytes[index - 1] == UInt8(ascii: "\"") { return text }
            text += try escape()
        }
        throw LineFault(reason: "a JSON string is not closed")
    }

    private mutating func escape() throws(LineFault) -> [UInt8] {
        guard index < end else { throw fault("an escape") }
        index += 1
        switch bytes[index - 1] {
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [bytes[index - 1]]
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw fault("a JSON escape")
        }
    }

    private mutating func unicodeEscape() throws(LineFault) -> [UInt8] {
        guard var code = hex() else { throw fault("four hex digits") }
        if (0xD800..<0xDC00).contains(code), take("\\"), take("u"), let low = hex(), (0xDC00..<0xE000).contains(low) {
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw LineFault(reason: "half a surrogate pair in JSON") }
        return Array(String(scalar).utf8)
    }

    private mutating func hex() -> UInt32? {
        guard end - index >= 4 else { return nil }
        let digits = String(decoding: bytes[index..<index + 4], as: UTF8.self)
        guard digits.utf8.count == 4, !digits.hasPrefix("+"), !digits.hasPrefix("-") else { return nil }
        index += 4
        return UInt32(digits, radix: 16)
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard index < end, UInt32(bytes[index]) == character.value else { return false }
        index += 1
        return true
    }

    private mutating func take(word: String) -> Bool {
        guard bytes[index..<end].starts(with: word.utf8) else { return false }
        index += word.utf8.count
        return true
    }

    private mutating func skipBlanks() {
        // A line contains no line feed, but a single object may.
        while index < end, Self.isBlank(bytes[index]) { index += 1 }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A
    }

    private func fault(_ expected: String) -> LineFault {
        LineFault(
            reason: index < end ? "JSON: expected \(expected)" : "JSON: the line ends where \(expected) should be")
    }
}
