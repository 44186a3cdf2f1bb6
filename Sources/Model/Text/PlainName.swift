import Foundation

/// The normalised spelling of a typed name. Two names that look the same are then equal in the store, which compares
/// bytes.
package enum PlainName {
    /// Returns the name in Unicode's form NFC, trimmed and without invisible characters. Each inner sequence of spaces
    /// and line ends becomes one ASCII space. The result is empty if the name has no visible character.
    package static func spelling(of name: String) -> String {
        let scalars = Array(name.precomposedStringWithCanonicalMapping.unicodeScalars)
        var plain = String.UnicodeScalarView()
        var isAfterSpace = false
        for (index, scalar) in scalars.enumerated() {
            if scalar.isSpaceSign {
                isAfterSpace = !plain.isEmpty
                continue
            }
            let next = index + 1 < scalars.count ? scalars[index + 1] : nil
            let previous = isAfterSpace ? nil : plain.last
            guard !scalar.isInvisible || isPartOfEmoji(scalar, after: previous, before: next) else { continue }
            if isAfterSpace { plain.append(" ") }
            plain.append(scalar)
            isAfterSpace = false
        }
        // Compose again, because removed characters may have separated a letter from its combining mark.
        return String(plain).precomposedStringWithCanonicalMapping
    }

    /// Tells whether two spellings are equal in the store. Swift's `==` would also equate "é" in both normal forms.
    package static func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

    /// Returns the spelling to use instead. `nil` if the name already has that spelling.
    package static func advice(for name: String) -> String? {
        let plain = spelling(of: name)
        return isSame(name, plain) ? nil : plain
    }

    /// Tells whether a scalar is a joiner between two emoji, or a selector that changes the look of the preceding
    /// emoji.
    private static func isPartOfEmoji(
        _ scalar: Unicode.Scalar, after previous: Unicode.Scalar?, before next: Unicode.Scalar?
    ) -> Bool {
        guard let previous else { return false }
        switch scalar.value {
        case 0x200D:
            guard let next, !next.isASCII, next.properties.isEmoji else { return false }
            return previous.value == 0xFE0F || !previous.isASCII && previous.properties.isEmoji
        case 0xFE0E: return previous.properties.isEmojiPresentation
        case 0xFE0F:
            return previous.properties.isEmoji && !previous.properties.isEmojiPresentation
                && (!previous.isASCII || next?.value == 0x20E3)
        default: return false
        }
    }
}

extension String {
    /// Whether the text has a visible character besides spaces, line ends and characters without a shape.
    package var hasVisibleSign: Bool { unicodeScalars.contains { !$0.isSpaceSign && !$0.isInvisible } }
}

extension Unicode.Scalar {
    /// Whether the scalar is a space of any width, a tab, a line end, or the Braille pattern without a dot.
    fileprivate var isSpaceSign: Bool { properties.isWhitespace || value == 0x2800 }

    /// Whether the scalar has no visible shape: a zero-width space, a direction mark, a Hangul filler.
    fileprivate var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format: true
        default: properties.isDefaultIgnorableCodePoint
        }
    }
}
