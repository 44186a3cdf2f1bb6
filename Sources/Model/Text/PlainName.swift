import Foundation

/// The one spelling of a name that a person types: two names that look the same are then the same to the store, which
/// compares bytes.
package enum PlainName {
    /// Returns the name in Unicode's form NFC, without spaces around it, with one ASCII space for each inner row of
    /// spaces and line ends, and without signs that cannot be seen. Empty if nothing of it can be seen.
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
        // What was between a letter and its mark may be gone.
        return String(plain).precomposedStringWithCanonicalMapping
    }

    /// Tells whether two spellings are the same to the store. Swift's `==` would also equate "é" in both normal forms.
    package static func isSame(_ one: String, _ other: String) -> Bool { one.utf8.elementsEqual(other.utf8) }

    /// Returns the spelling to write instead; `nil` if the name is written in it.
    package static func advice(for name: String) -> String? {
        let plain = spelling(of: name)
        return isSame(name, plain) ? nil : plain
    }

    /// A joiner between two emoji, or a selector that changes how the emoji in front of it looks.
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
    /// Something of the text can be seen: it is not empty, and not only spaces, line ends and signs without a shape.
    package var hasVisibleSign: Bool { unicodeScalars.contains { !$0.isSpaceSign && !$0.isInvisible } }
}

extension Unicode.Scalar {
    /// A space of any width, a tab, a line end, or the Braille pattern without a dot.
    fileprivate var isSpaceSign: Bool { properties.isWhitespace || value == 0x2800 }

    /// Shown as nothing: a zero-width space, a mark of direction, a Hangul filler.
    fileprivate var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format: true
        default: properties.isDefaultIgnorableCodePoint
        }
    }
}
