/// Writes and reads cells of CSV (RFC 4180): the one place that quotes a value, and the one that marks a formula.
///
/// People open these tables as a sheet, and phones choose many of the values. A value that a sheet takes for a formula has
/// `'` in front of it. An import takes that mark off again, so that an export and its import are each other's inverse:
/// marks are added and removed one at a time, and only in front of a formula. Values are judged by bytes and Unicode
/// scalars: a quote or a comma behind a combining sign is still one.
package enum CSVLine {
    /// A line without its end.
    package static func text(_ values: [String]) -> String {
        var bytes: [UInt8] = []
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(comma) }
            append(value, to: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends one cell, marked and quoted where it must be.
    package static func append(_ value: String, to bytes: inout [UInt8], quotes: Bool = false) {
        let isMarked = isFormula(value)
        let hasBlankEnd = !isMarked && isBlank(value.utf8.first) || isBlank(value.utf8.last)
        let isQuoted = quotes || hasBlankEnd || value.utf8.contains(where: mustQuote)
        if isQuoted { bytes.append(quote) }
        if isMarked { bytes.append(mark) }
        for byte in value.utf8 {
            if byte == quote { bytes.append(quote) }
            bytes.append(byte)
        }
        if isQuoted { bytes.append(quote) }
    }

    /// Returns the cell's range without the mark that ``text(_:)`` puts in front of a formula.
    ///
    /// - Parameter range: a cell in `bytes`, without the quotes around it.
    package static func withoutMark(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        guard !range.isEmpty, bytes[range.lowerBound] == mark,
            isFormula(String(decoding: bytes[range], as: UTF8.self))
        else { return range }
        return range.lowerBound + 1..<range.upperBound
    }

    private static let quote = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")
    private static let mark = UInt8(ascii: "'")
    /// The first signs of a formula, also as wide forms, which some sheets take for the same.
    private static let formulaSigns: Set<Unicode.Scalar> = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"]

    private static func mustQuote(_ byte: UInt8) -> Bool {
        byte == quote || byte == comma || byte == 0x0A || byte == 0x0D
    }

    /// A reader drops blanks at the ends of a cell that has no quotes.
    private static func isBlank(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Marks in front, and signs that a sheet does not show, are passed over. A number is no formula.
    private static func isFormula(_ value: String) -> Bool {
        let text = value.unicodeScalars.drop { $0 == "'" }
        guard let first = text.first(where: { formulaSigns.contains($0) || !isUnseen($0) }),
            formulaSigns.contains(first)
        else { return false }
        return !isNumber(text)
    }

    private static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.isDefaultIgnorableCodePoint
            || scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
    }

    /// `-5`, `+4.25`: a sign, digits, and at most one point between them.
    private static func isNumber(_ text: Substring.UnicodeScalarView) -> Bool {
        guard let sign = text.first, sign == "+" || sign == "-" else { return false }
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return parts.count <= 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { ("0"..."9").contains($0) } }
    }
}
