import Foundation
import Model
import OutputFiles

/// Takes the lines that an import could not use: `line,reason,original text`, with tokens cut to their last 8
/// characters. A file without lines is removed at the end if an import made it.
struct RejectsFile {
    private static let originalBytesMax = 4096
    private static let flushBytes = 1 << 16
    private static let header = Array("line,reason,original text\n".utf8)

    private let path: String
    private let output: Result<OutputWriter, ImportError>
    /// Made by an earlier import.
    private let wasOurs: Bool
    private var waiting: [UInt8] = header
    private var count = 0

    /// The path of an import whose caller names none.
    static func defaultPath(for input: String) -> String {
        input == "-" ? "stdin.rejects.csv" : input + ".rejects.csv"
    }

    /// Restarts a file from an earlier import. `input` is the file being read. A default path that cannot be written is an
    /// error only once a line is rejected.
    init(path: String, input: String) throws(ImportError) {
        self.path = path
        let own = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        if own == URL(fileURLWithPath: input).resolvingSymlinksInPath() {
            throw .rejectsUnwritable(path: path, reason: "it is the file being imported")
        }
        let target = OutputPath(path)
        wasOurs = target.begins(with: Self.header)
        do {
            output = .success(try target.open(.closedToOthers, isWhole: false))
        } catch {
            let fault = ImportError.rejectsUnwritable(path: path, reason: error.description)
            guard path == Self.defaultPath(for: input) else { throw fault }
            output = .failure(fault)
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
        guard case .success(let writer) = output else { return }
        guard count > 0 else { return writer.discard(isOurs: wasOurs) }
        try written { () throws(OutputFault) in try writer.finish() }
    }

    /// Writes what waits, so that an import that is broken off keeps the lines it rejected.
    mutating func flush() throws {
        guard count > 0, !waiting.isEmpty else { return }
        let writer = try output.get()
        try written { () throws(OutputFault) in try writer.write(waiting) }
        waiting.removeAll(keepingCapacity: true)
    }

    private func written(_ body: () throws(OutputFault) -> Void) throws(ImportError) {
        do {
            try body()
        } catch {
            // The person who reads a pipe may have seen enough.
            guard !error.isReaderGone else { return }
            throw ImportError.rejectsUnwritable(path: path, reason: error.description)
        }
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
