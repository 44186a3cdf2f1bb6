/// Unicode scalars that Swift joins into one `Character` with what stands beside them, and others that readers treat
/// differently: for tests of code that must see a `<`, a quote or a comma wherever it stands.
package enum OddScalars {
    package static let all: [Unicode.Scalar] = [
        // Prepended signs join with what follows.
        "\u{0600}", "\u{070F}", "\u{0D4E}", "\u{110BD}",
        // Combining signs, joiners, variation selectors and modifiers join with what is in front.
        "\u{0301}", "\u{20E3}", "\u{0903}", "\u{034F}", "\u{200D}", "\u{200C}", "\u{FE0F}", "\u{E0100}", "\u{1F3FB}",
        "\u{E0061}",
        // Controls, line ends of several kinds, and blanks.
        "\u{0}", "\u{1}", "\t", "\n", "\r", "\u{B}", "\u{C}", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{A0}",
        "\u{2028}", "\u{2029}", " ",
        // Direction and format.
        "\u{202E}", "\u{2066}", "\u{061C}", "\u{FEFF}", "\u{AD}",
        // Others.
        "\u{1100}", "\u{1F1E6}", "\u{1F600}", "é", "a", "\u{FFFD}",
    ]

    /// Each of them in front of a text, behind it and on both sides.
    package static func around(_ text: String) -> [String] {
        all.flatMap { scalar -> [String] in
            let odd = String(String.UnicodeScalarView([scalar]))
            return [odd + text, text + odd, odd + text + odd, odd + odd + text + odd + odd]
        }
    }
}
