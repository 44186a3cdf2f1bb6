import Model
import Testing

/// The one spelling of a name that a person types.
struct PlainNameTests {
    private static let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"

    @Test(arguments: [
        "o1", "o 1", "café", "Überraschung", "ニュース", "page-2026-12-01T09:00:00Z", "timer-2026-10-25T02+02:00",
        "item-episode-42-00a1b2c3d4e5f607", family, "\u{2764}\u{FE0F}", "1\u{FE0F}\u{20E3}",
        "\u{1F3F3}\u{FE0F}\u{200D}\u{1F308}",
    ])
    func `a plain name needs no advice`(name: String) {
        #expect(PlainName.advice(for: name) == nil)
    }

    @Test(arguments: [
        ("cafe\u{301}", "caf\u{E9}"), ("cafe\u{34F}\u{301}", "caf\u{E9}"), ("o\u{200B}1", "o1"), ("o\u{A0}1", "o 1"),
        ("o  1", "o 1"), ("o\t1", "o 1"), ("o\u{2028}1", "o 1"), (" o1\u{3000}", "o1"), ("o\u{202E}1", "o1"),
        ("a\u{200D}b", "ab"), ("1\u{FE0F}", "1"), ("\u{1F600}\u{FE0F}", "\u{1F600}"),
        ("\u{1F600}\u{200D}", "\u{1F600}"), ("\u{200B} \u{2800}\u{3164}", ""),
    ])
    func `a name that looks like another gets the plain one as advice`(name: String, plain: String) throws {
        let advice = try #require(PlainName.advice(for: name))
        #expect(PlainName.isSame(advice, plain), "\(advice.unicodeScalars.map(\.value))")
        #expect(PlainName.advice(for: advice) == nil)
    }

    @Test func `a text of spaces and invisible signs has nothing to be seen`() {
        for text in ["", " ", "\t\r\n", "\u{200B}", "\u{A0}\u{FEFF}", "\u{3164}"] { #expect(!text.hasVisibleSign) }
        for text in ["x", " x ", "0", "\u{1F600}", "\u{301}"] { #expect(text.hasVisibleSign) }
    }
}
