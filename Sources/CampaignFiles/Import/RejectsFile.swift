package import Foundation
import Model

/// Takes the lines that an import could not use: `line,reason,original text`, with tokens cut to their last 8
/// characters. Readable by its owner only, and removed at the end when it holds nothing.
struct RejectsFile {
    private static let originalBytesMax = 4096
    private static let flushBytes = 1 << 16

    private let path: String
    private let file: FileHandle
    private var waiting: [UInt8] = Array("line,reason,original text\n".utf8)
    private var count = 0

    /// Begins anew; a file from an earlier import is overwritten. `input` is the file being read.
    init(path: String, input: String) throws(ImportError) {
        self.path = path
        let own = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        if own == URL(fileURLWithPath: input).resolvingSymlinksInPath() {
            throw .rejectsUnwritable(path: path, reason: "it is the file being imported")
        }
        do {
            file = try PrivateFile.open(path)
        } catch {
            throw .rejectsUnwritable(path: path, reason: error.description)
        }
    }

    mutating func add(line: Int, reason: String, bytes: [UInt8], range: Range<Int>, token: Range<Int>?) throws {
        count += 1
        let kept = range.lowerBound..<min(range.upperBound, range.lowerBound + Self.originalBytesMax)
        let original = TokenRedaction.redacted(bytes, kept, token: token)
        waiting += Array("\(line),".utf8)
        CSVLine.append(reason, to: &waiting, quotes: true)
        waiting.append(UInt8(ascii: ","))
        CSVLine.append(String(decoding: original, as: UTF8.self), to: &waiting, quotes: true)
        waiting.append(0x0A)
        if waiting.count >= Self.flushBytes { try flush() }
    }

    mutating func finish() throws {
        try flush()
        try file.close()
        if count == 0 { try FileManager.default.removeItem(atPath: path) }
    }

    /// Writes what waits, so that an import that is broken off keeps the lines it rejected.
    mutating func flush() throws {
        guard !waiting.isEmpty else { return }
        do {
            try file.write(contentsOf: Data(waiting))
        } catch {
            throw ImportError.rejectsUnwritable(path: path, reason: error.localizedDescription)
        }
        waiting.removeAll(keepingCapacity: true)
    }
}

/// Files with what is nobody's business but their owner's: readable by it alone, whatever the umask.
package enum PrivateFile {
    /// In the system's words.
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    /// Begins the file anew; one that was there is closed to others, too.
    ///
    /// - Parameter isNew: refuses one that is there already.
    package static func open(_ path: String, isNew: Bool = false) throws(Failed) -> FileHandle {
        let file = Foundation.open(
            path, O_WRONLY | O_CREAT | O_CLOEXEC | (isNew ? O_EXCL : O_TRUNC), 0o600)
        guard file >= 0 else { throw Failed(description: String(cString: strerror(errno))) }
        // A pipe or a terminal keeps the mode that it has.
        var facts = stat()
        if fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG { fchmod(file, 0o600) }
        return FileHandle(fileDescriptor: file, closeOnDealloc: true)
    }
}

/// Cuts what may be a device token to its last 8 characters, wherever in a broken line it stands.
enum TokenRedaction {
    private static let shown = 8
    /// So many hex digits, blanks and `<>` between them not counted, are a token.
    private static let hexDigitsMin = 16
    /// So many letters and digits on end may be a token in another notation.
    private static let lettersMin = 32

    /// `token` is the range of the token's own field where it is known; it is cut whatever it holds.
    static func redacted(_ bytes: [UInt8], _ range: Range<Int>, token: Range<Int>?) -> [UInt8] {
        var result: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            if let token, index == token.lowerBound, !token.isEmpty {
                let end = min(token.upperBound, range.upperBound)
                append(bytes[index..<end], to: &result)
                index = end
                continue
            }
            // The token's own field ends a run, so that its first byte is met above.
            let limit = token.flatMap { $0.lowerBound > index ? min($0.lowerBound, range.upperBound) : nil }
            let end = runEnd(bytes, index..<(limit ?? range.upperBound))
            if end > index {
                append(bytes[index..<end], to: &result)
                index = end
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// The end of what looks like a token and begins here; the beginning itself when nothing does.
    private static func runEnd(_ bytes: [UInt8], _ range: Range<Int>) -> Int {
        var digits = 0
        var end = range.lowerBound
        while end < range.upperBound, isHex(bytes[end]) || (digits > 0 && isFiller(bytes[end])) {
            if isHex(bytes[end]) { digits += 1 }
            end += 1
        }
        if digits >= hexDigitsMin { return end }
        end = range.lowerBound
        while end < range.upperBound, isLetter(bytes[end]) { end += 1 }
        return end - range.lowerBound >= lettersMin ? end : range.lowerBound
    }

    private static func append(_ token: ArraySlice<UInt8>, to result: inout [UInt8]) {
        let bare = token.filter { !isFiller($0) }
        if bare.count > shown { result += Array("…".utf8) }
        result += bare.suffix(shown)
    }

    private static func isFiller(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "<") || byte == UInt8(ascii: ">")
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// Letters and digits, and the four signs of base64 in its two alphabets.
    private static func isLetter(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || "+/=_".utf8.contains(byte) }
}
