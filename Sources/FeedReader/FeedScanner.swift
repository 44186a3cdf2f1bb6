import Foundation
import Model

/// The limits for reading untrusted documents.
package enum FeedLimits {
    /// The size of a whole document.
    package static let documentBytesMax = 16 << 20
    /// The depth of nested elements.
    package static let depthMax = 100
    /// The attributes of one element, including name spaces.
    package static let attributesMax = 100
    /// The name spaces in force at one position of the document.
    package static let nameSpacesMax = 100
    package static let documentTypeBytesMax = 8192
    /// The number of items that are used. Further items are skipped.
    package static let itemsMax = 2000
    /// The size of one field of an item during reading, including markup.
    package static let gatheredBytesMax = 65_536
    /// The size of one field of an item.
    package static let textBytesMax = 4096
}

/// Scans a document once before the XML parser reads it, and refuses input for which the parser's time is not
/// proportional to the size. With every piece of input, libxml2 searches an unfinished comment again from its
/// beginning. libxml2 also compares each attribute and name space of an element with all the others.
struct FeedScanner {
    /// The number of bytes between checks for cancellation.
    private static let lookEveryBytes = 1 << 16
    /// The size of a byte order mark, which may precede the declaration.
    private static let markBytes = 3

    /// The document without comments, processing instructions and document type. Line numbers do not change.
    private(set) var cleaned: [UInt8] = []
    private let bytes: [UInt8]
    private let isCancelled: () -> Bool
    private var position = 0
    private var line = 1
    private var nextLook = lookEveryBytes
    /// The number of name spaces that each open element declares.
    private var open: [Int] = []
    private var nameSpaces = 0

    init(_ bytes: [UInt8], isCancelled: @escaping () -> Bool) {
        self.bytes = bytes
        self.isCancelled = isCancelled
    }

    mutating func scan() throws(FeedError) {
        guard bytes.count <= FeedLimits.documentBytesMax else { throw .beyond(.documentBytes) }
        cleaned.reserveCapacity(bytes.count)
        while position < bytes.count {
            try look()
            if bytes[position] != UInt8(ascii: "<") {
                keep(1)
            } else if starts(with: "<!--") {
                try skip(4, through: "-->")
            } else if starts(with: "<![CDATA[") {
                try keep(through: "]]>")
            } else if starts(with: "<?xml "), cleaned.count <= Self.markBytes {
                try keep(through: "?>")
            } else if starts(with: "<?") {
                // XMLParser crashes the process on a processing instruction without data.
                try skip(2, through: "?>")
            } else if starts(with: "<!") {
                try skipDocumentType()
            } else {
                try keepTag()
            }
        }
    }

    private mutating func look() throws(FeedError) {
        guard position >= nextLook else { return }
        nextLook = position + Self.lookEveryBytes
        if isCancelled() { throw .cancelled }
    }

    private func starts(with text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    private mutating func keep(_ count: Int) {
        for byte in bytes[position..<position + count] {
            if byte == UInt8(ascii: "\n") { line += 1 }
            cleaned.append(byte)
        }
        position += count
    }

    /// Skips a part, and keeps its line ends.
    private mutating func skip(_ count: Int, through end: String) throws(FeedError) {
        let start = line
        position += count
        while !starts(with: end) {
            guard position < bytes.count else { throw .malformed(line: start) }
            try look()
            if bytes[position] == UInt8(ascii: "\n") {
                line += 1
                cleaned.append(bytes[position])
            }
            position += 1
        }
        position += end.utf8.count
    }

    private mutating func keep(through end: String) throws(FeedError) {
        let start = line
        while !starts(with: end) {
            guard position < bytes.count else { throw .malformed(line: start) }
            try look()
            keep(1)
        }
        keep(end.utf8.count)
    }

    /// Skips the document type with the entities that it declares, because an entity could stand for any markup. A
    /// feed that uses such an entity is refused as malformed.
    private mutating func skipDocumentType() throws(FeedError) {
        let start = position
        var depth = 0
        while position < bytes.count {
            guard position - start < FeedLimits.documentTypeBytesMax else { throw .beyond(.documentType) }
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ">") where depth <= 0: return
            case UInt8(ascii: "\n"):
                line += 1
                cleaned.append(byte)
            default: break
            }
        }
        throw .malformed(line: line)
    }

    private mutating func keepTag() throws(FeedError) {
        let start = position
        let isEnd = position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "/")
        var quote: UInt8?
        var (attributes, declared) = (0, 0)
        keep(1)
        while position < bytes.count {
            try look()
            let byte = bytes[position]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: "=") {
                attributes += 1
                guard attributes <= FeedLimits.attributesMax else { throw .beyond(.attributes) }
            } else if byte == UInt8(ascii: "x"), starts(with: "xmlns") {
                declared += 1
            } else if byte == UInt8(ascii: ">") {
                let isWhole = bytes[position - 1] == UInt8(ascii: "/") && position - 1 > start
                keep(1)
                return try ended(isEnd: isEnd, isWhole: isWhole, declared: declared)
            }
            keep(1)
        }
        throw .malformed(line: line)
    }

    private mutating func ended(isEnd: Bool, isWhole: Bool, declared: Int) throws(FeedError) {
        if isEnd {
            nameSpaces -= open.popLast() ?? 0
            return
        }
        guard nameSpaces + declared <= FeedLimits.nameSpacesMax else { throw .beyond(.nameSpaces) }
        guard !isWhole else { return }
        open.append(declared)
        nameSpaces += declared
        guard open.count <= FeedLimits.depthMax else { throw .beyond(.depth) }
    }
}

/// Converts a document into an encoding in which the byte `<` has no other meaning. The scanner and the XML parser must
/// see the same markup.
enum FeedEncoding {
    private static let known = [
        "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "iso8859-", "latin1", "windows-12", "cp12", "koi8-", "gb",
        "big5", "shift_jis", "euc-",
    ]
    /// The number of bytes at the beginning of a document in which the declaration must end.
    private static let declarationBytesMax = 256

    static func scannable(_ bytes: [UInt8]) throws(FeedError) -> [UInt8] {
        if let text = wideText(bytes) { return Array(withoutDeclaration(text).utf8) }
        guard bytes.first != 0, !bytes.prefix(4).contains(0) else { throw .encoding("UTF-32") }
        let start = String(decoding: bytes.prefix(declarationBytesMax), as: UTF8.self)
        let declaration = start.firstMatch(
            of: /^\u{FEFF}?<\?xml[^>]{0,100}?encoding\s*=\s*["']([^"']{1,40})["']/)
        let name = (declaration?.output.1).map { $0.lowercased() } ?? "utf-8"
        guard known.contains(where: { name.hasPrefix($0) }) else { throw .encoding(name) }
        if name == "utf-8" || name == "utf8" { try requireUTF8(bytes) }
        return bytes
    }

    /// Refuses bytes that are not UTF-8, because XMLParser crashes the process on a name with such bytes.
    private static func requireUTF8(_ bytes: [UInt8]) throws(FeedError) {
        guard String(validating: bytes, as: UTF8.self) == nil else { return }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let wrong = lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0
        throw .malformed(line: wrong + 1)
    }

    /// Decodes UTF-16, recognised by its byte order mark or by `<` as the first character. Returns `nil` for other
    /// encodings.
    private static func wideText(_ bytes: [UInt8]) -> String? {
        let isBig: Bool
        switch (bytes.first, bytes.dropFirst().first) {
        case (0xFE, 0xFF), (0, UInt8(ascii: "<")): isBig = true
        case (0xFF, 0xFE) where bytes.prefix(4) != [0xFF, 0xFE, 0, 0]: isBig = false
        case (UInt8(ascii: "<"), 0) where bytes.prefix(4) != [UInt8(ascii: "<"), 0, 0, 0]: isBig = false
        default: return nil
        }
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count / 2)
        for index in stride(from: 0, to: bytes.count - 1, by: 2) {
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            units.append(isBig ? first << 8 | second : second << 8 | first)
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Removes the declaration, because it names the text's former encoding.
    private static func withoutDeclaration(_ text: String) -> Substring {
        let text = text.first == "\u{FEFF}" ? text.dropFirst() : text[...]
        guard text.hasPrefix("<?xml"), let end = text.prefix(declarationBytesMax).place(of: "?>") else {
            return text
        }
        return text[end.upperBound...]
    }
}
