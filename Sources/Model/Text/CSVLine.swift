/// Writes and reads cells of CSV (RFC 4180). All quoting of values and marking of formulas happens here.
///
/// People open these tables in a spreadsheet, and devices supply many of the values. A value that a spreadsheet would
/// read as a formula gets `'` in front. An import removes that mark, so that export and import are inverse to each
/// other. An export adds one mark and an import removes one, and only in front of a formula. The code compares bytes
/// and Unicode scalars, so that a quote or a comma next to a combining character is recognised.
package enum CSVLine {
    /// Returns a line without its line end.
    package static func text(_ values: [String]) -> String {
        var bytes: [UInt8] = []
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(comma) }
            append(value, to: &bytes)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends one cell, marked and quoted if necessary.
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
    /// The first characters of a formula, including wide forms, which some spreadsheets treat alike.
    private static let formulaSigns: Set<Unicode.Scalar> = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"]

    private static func mustQuote(_ byte: UInt8) -> Bool {
        byte == quote || byte == comma || byte == 0x0A || byte == 0x0D
    }

    /// Tells whether a reader would drop this byte at either end of an unquoted cell.
    private static func isBlank(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Tells whether a spreadsheet would read the value as a formula. Leading marks and invisible characters are
    /// skipped. A number is no formula.
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

    /// Tells whether a text is a number such as `-5` or `+4.25`: a sign, digits, and at most one point between them.
    private static func isNumber(_ text: Substring.UnicodeScalarView) -> Bool {
        guard let sign = text.first, sign == "+" || sign == "-" else { return false }
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return parts.count <= 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { ("0"..."9").contains($0) } }
    }
}
