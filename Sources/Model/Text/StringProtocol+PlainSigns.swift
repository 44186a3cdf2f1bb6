/// Operations on external text by bytes and Unicode scalars.
///
/// A `Character` includes adjacent combining characters, joiners and prepended characters, and `"\r\n"` is one.
/// Comparing by `Character` therefore overlooks a quote or a colon that every other reader sees.
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

    /// Returns whether the text contains these bytes. It is much faster than a regular expression, so it is the check
    /// whether one could match.
    package func holds(_ word: String) -> Bool {
        let sought = word.utf8
        guard let first = sought.first else { return true }
        var rest = utf8[...]
        while let start = rest.firstIndex(of: first) {
            rest = rest[start...]
            if rest.starts(with: sought) { return true }
            rest = rest.dropFirst()
        }
        return false
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
