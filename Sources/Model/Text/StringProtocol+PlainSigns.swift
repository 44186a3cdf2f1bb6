/// Operations on external text by bytes and Unicode scalars.
///
/// A `Character` includes adjacent combining characters, joiners and prepended characters, and `"\r\n"` is one.
/// Comparing by `Character` therefore overlooks a quote or a colon that every other reader sees. A step back by one
/// `Character` also reads a whole row of flags, so that walking back through the row has a quadratic cost, and so has
/// `firstRange(of:)`.
extension StringProtocol {
    /// Returns the text with each occurrence of an ASCII character replaced. Unlike `replacing(_:with:)`, it also
    /// finds an occurrence next to a combining character.
    package func replacingSign(_ sign: Unicode.Scalar, with replacement: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        for byte in utf8 {
            if byte == UInt8(ascii: sign) { bytes += replacement.utf8 } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the texts before and after the first occurrence of an ASCII character. `nil` if there is none.
    package func splitAtSign(_ sign: Unicode.Scalar) -> (before: String, after: String)? {
        guard let index = utf8.firstIndex(of: UInt8(ascii: sign)) else { return nil }
        return (String(self[..<index]), String(decoding: utf8[index...].dropFirst(), as: UTF8.self))
    }

    /// Returns the texts before and after the last occurrence of an ASCII character. `nil` if there is none.
    package func splitAtLastSign(_ sign: Unicode.Scalar) -> (before: String, after: String)? {
        guard let index = unicodeScalars.lastIndex(of: sign) else { return nil }
        return (String(self[..<index]), String(decoding: utf8[index...].dropFirst(), as: UTF8.self))
    }

    /// Returns the first place of these bytes, or `nil` if there is none.
    package func place(of word: String) -> Range<String.Index>? {
        let sought = word.utf8
        guard let first = sought.first else { return startIndex..<startIndex }
        var rest = utf8[...]
        while let start = rest.firstIndex(of: first) {
            rest = rest[start...]
            if rest.starts(with: sought) { return start..<rest.index(start, offsetBy: sought.count) }
            rest = rest.dropFirst()
        }
        return nil
    }

    /// Returns the places of these bytes, in order. They do not overlap.
    package func places(of word: String) -> [Range<String.Index>] {
        var places: [Range<String.Index>] = []
        var start = startIndex
        while start < endIndex, let place = self[start...].place(of: word), !place.isEmpty {
            places.append(place)
            start = place.upperBound
        }
        return places
    }

    /// Returns the text with each occurrence of these bytes replaced.
    package func replacingWord(_ word: String, with replacement: String) -> String {
        var text = ""
        var start = startIndex
        for place in places(of: word) {
            text += self[start..<place.lowerBound]
            text += replacement
            start = place.upperBound
        }
        return text + self[start...]
    }

    /// Returns whether the text contains these bytes. It is much faster than a regular expression, so it is the check
    /// whether one could match.
    package func holds(_ word: String) -> Bool { place(of: word) != nil }

    /// The text without white space at either end.
    package var trimmed: String {
        let scalars = unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(String.UnicodeScalarView(scalars[first...last]))
    }

    /// The lines, without their ends: LF, CR LF or CR.
    package var plainLines: [String] {
        var lines: [[UInt8]] = [[]]
        var wasReturn = false
        for byte in utf8 {
            if byte == 0x0D || byte == 0x0A && !wasReturn {
                lines.append([])
            } else if byte != 0x0A {
                lines[lines.count - 1].append(byte)
            }
            wasReturn = byte == 0x0D
        }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The text as one line: control characters become blanks.
    package var onOneLine: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
    }

    /// The text as one line, without terminal commands and changes of writing direction.
    package var withoutCommands: String {
        String(
            String.UnicodeScalarView(
                onOneLine.unicodeScalars.filter {
                    !(0x202A...0x202E).contains($0.value) && !(0x2066...0x2069).contains($0.value)
                }.map { [0x2028, 0x2029].contains($0.value) ? " " : $0 }))
    }

    /// Tells whether the text contains only ASCII letters, ASCII digits and these characters.
    package func isPlain(allowing signs: String) -> Bool {
        utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                || signs.utf8.contains($0)
        }
    }

    /// Returns the text as one word of a shell's command line.
    package func shellWord(allowing signs: String) -> String {
        !isEmpty && isPlain(allowing: signs) ? String(self) : "'\(replacingSign("'", with: "'\\''"))'"
    }
}
