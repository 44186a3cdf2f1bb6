import Foundation
import Model
import OutputFiles

/// Writes the unusable lines of an import: `line,reason,original text`, with only the last 8 characters of tokens. A
/// file without lines is removed at the end if an import created it.
struct RejectsFile {
    /// The maximum number of bytes of a line that are written.
    static let originalBytesMax = 4096
    private static let flushBytes = 1 << 16
    private static let header = Array("line,reason,original text\n".utf8)

    private let path: String
    private let output: Result<OutputWriter, ImportError>
    /// Whether an earlier import created the file.
    private let wasOurs: Bool
    private var waiting: [UInt8] = header
    private var count = 0

    /// Returns the default path of the rejects file for an input.
    static func defaultPath(for input: String) -> String {
        input == "-" ? "stdin.rejects.csv" : input + ".rejects.csv"
    }

    /// Starts the file, and replaces one from an earlier import. `input` is the file being read. An unwritable default
    /// path is an error only once a line is rejected.
    init(path: String, input: String) throws(ImportError) {
        self.path = path
        let own = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        if own == URL(fileURLWithPath: input).resolvingSymlinksInPath() {
            throw .rejectsUnwritable(path: path, reason: "it is the file being imported")
        }
        let target = OutputPath(path)
        wasOurs = target.begins(with: Self.header)
        let isDefault = path == Self.defaultPath(for: input)
        let reason: String
        do {
            // A path that a person names may lead to other data, such as a store.
            if isDefault || wasOurs || !target.holdsData {
                output = .success(try target.open(.closedToOthers, isWhole: false))
                return
            }
            reason = "the file exists and holds something else; name a new file"
        } catch {
            reason = error.description
        }
        let fault = ImportError.rejectsUnwritable(path: path, reason: reason)
        guard isDefault else { throw fault }
        output = .failure(fault)
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

    /// Writes the waiting lines, so that an interrupted import keeps its rejected lines.
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
            // The reader of a pipe may have closed it deliberately.
            guard !error.isReaderGone else { return }
            throw ImportError.rejectsUnwritable(path: path, reason: error.description)
        }
    }
}

/// Shortens possible device tokens to their last 8 characters, anywhere in a broken line.
enum TokenRedaction {
    private static let shown = 8
    /// The minimum number of hex digits of a token. Blanks and `<>` between them do not count.
    private static let hexDigitsMin = 16
    /// The minimum number of consecutive letters and digits of a token in another notation.
    private static let lettersMin = 32

    /// Returns the line with shortened tokens. `token` is the range of the token's own field, if known. That field is
    /// always shortened.
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
            // A sequence ends before the token's own field, so that the check above finds the field's first byte.
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

    /// Returns the end of a possible token at the start of the range. Returns the start if there is no such token.
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

    /// Tells whether a byte is a letter, a digit, or one of the four signs of base64 in its two alphabets.
    private static func isLetter(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || "+/=_".utf8.contains(byte) }
}
