import Foundation

extension JSONSchema.File {
    /// Returns the kind of a YAML file: the kind that defines most of the keys in the file. If no kind defines any of
    /// them, the path decides.
    ///
    /// - Parameter unsaved: the unsaved text of the file. `nil` to read the file.
    package static func of(path: String, unsaved: String? = nil) -> Self {
        let text = unsaved ?? (try? RegularFile.read(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let keys = keys(of: FileText.withoutMark(text))
        // If two kinds define equally many of the keys, the first kind in this list wins.
        let known = [template, campaign, configuration].map { kind in
            (kind: kind, count: kind.shape.keys.count { keys.contains($0.name) })
        }
        if let most = known.map(\.count).max(), most > 0, let first = known.first(where: { $0.count == most }) {
            return first.kind
        }
        return path.split(separator: "/").suffix(2).contains { $0.contains("template") } ? template : campaign
    }

    /// Returns the keys, read line by line, so that a file with mistakes is still recognised. The keys of a text that
    /// begins with `{` may be anywhere in a line.
    private static func keys(of text: String) -> Set<String> {
        let bytes = Array(text.utf8)
        let isFlow = bytes.first { !isBlank($0) && !isLineEnd($0) } == UInt8(ascii: "{")
        var keys: Set<String> = []
        // The beginning of the text that may end in a key. `nil` behind the first colon of a line.
        var start: Int? = 0
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: ":"), let first = start {
                if let key = key(in: bytes[first..<index], isWhole: !isFlow) { keys.insert(key) }
                start = isFlow ? index + 1 : nil
            } else if !isFlow, isLineEnd(byte) {
                start = index + 1
            }
        }
        return keys
    }

    /// Returns the word at the end of the bytes, without quotes and blanks.
    ///
    /// - Parameter isWhole: whether the bytes must consist of the word alone.
    private static func key(in bytes: ArraySlice<UInt8>, isWhole: Bool) -> String? {
        guard let last = bytes.lastIndex(where: { !isBlank($0) && (isWhole || !isLineEnd($0)) }) else { return nil }
        let end = isQuote(bytes[last]) ? last : last + 1
        let start = bytes[..<end].lastIndex { !isInWord($0) }.map { $0 + 1 } ?? bytes.startIndex
        let before = bytes[..<start]
        guard start < end, !isWhole || before.isEmpty || before.count == 1 && before.allSatisfy(isQuote) else {
            return nil
        }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }

    /// Whether the byte belongs to a word. All bytes of letters beyond ASCII do.
    private static func isInWord(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte == UInt8(ascii: "_") || byte >= 0x80
    }
}
