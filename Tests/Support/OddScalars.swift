/// Unicode scalars that Swift combines with their neighbours into one `Character`, and others that parsers treat
/// differently. They test code that must find each `<`, quote or comma.
package enum OddScalars {
    package static let all: [Unicode.Scalar] = [
        // Prepended marks combine with the next scalar.
        "\u{0600}", "\u{070F}", "\u{0D4E}", "\u{110BD}",
        // Combining marks, joiners, variation selectors and modifiers combine with the previous scalar.
        "\u{0301}", "\u{20E3}", "\u{0903}", "\u{034F}", "\u{200D}", "\u{200C}", "\u{FE0F}", "\u{E0100}", "\u{1F3FB}",
        "\u{E0061}",
        // Controls, several line ends, and spaces.
        "\u{0}", "\u{1}", "\t", "\n", "\r", "\u{B}", "\u{C}", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{A0}",
        "\u{2028}", "\u{2029}", " ",
        // Direction marks and format characters.
        "\u{202E}", "\u{2066}", "\u{061C}", "\u{FEFF}", "\u{AD}",
        // Others.
        "\u{1100}", "\u{1F1E6}", "\u{1F600}", "é", "a", "\u{FFFD}",
    ]

    /// Returns the text with each scalar before it, after it and on both sides.
    package static func around(_ text: String) -> [String] {
        all.flatMap { scalar -> [String] in
            let odd = String(String.UnicodeScalarView([scalar]))
            return [odd + text, text + odd, odd + text + odd, odd + odd + text + odd + odd]
        }
    }
}
