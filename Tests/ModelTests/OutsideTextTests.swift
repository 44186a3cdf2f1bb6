import Model
import Testing

/// Numbers and texts of others neither end the process nor hide what is in them.
struct OutsideTextTests {
    @Test(arguments: [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max])
    func `arithmetic with moments stops at the ends`(milliseconds: Int64) {
        let moment = Timestamp(milliseconds: milliseconds)
        for duration in [Duration.seconds(Int64.max), .seconds(Int64.min), .milliseconds(1), .milliseconds(-1), .zero] {
            let (later, earlier) = (moment + duration, moment - duration)
            #expect((later >= moment) == (duration >= .zero) || later == moment)
            #expect((earlier <= moment) == (duration >= .zero) || earlier == moment)
            #expect(!later.iso8601.isEmpty && !earlier.iso8601.isEmpty)
        }
        #expect(moment - Timestamp(milliseconds: milliseconds) == .zero)
        _ = (moment - Timestamp(milliseconds: .min), moment - Timestamp(milliseconds: .max))
        _ = Timestamp(seconds: milliseconds)
    }

    @Test func `a written duration ends where years of four digits do`() {
        #expect(WrittenDuration.parse("365000d") == WrittenDuration.longest)
        for text in ["365001d", "9223372036854775s", "9223372036854775807ms", "365000d1ms", "99999999999999999999d"] {
            #expect(WrittenDuration.parse(text) == nil)
        }
    }

    @Test func `tokens are found beside combining signs`() {
        let token = String(repeating: "0aF1", count: 16)
        for sign in ["\u{0600}", "\u{0301}", "\u{FE0F}", "\r\n", "é"] {
            let shown = Redaction.withoutTokens(sign + token + sign)
            #expect(shown.utf8.elementsEqual("\(sign)…0aF10aF1\(sign)".utf8))
        }
        #expect(Redaction.withoutTokens("x y \(token)") == "x y …0aF10aF1")
        #expect(Redaction.withoutTokens(String(repeating: "z ", count: 5)) == "z z z z z ")
    }

    @Test(arguments: ["\u{0301}", "\u{FE0F}", "\u{200D}"])
    func `a placeholder beside combining signs is one`(sign: String) throws {
        let text = try TemplateText(parsing: "a\(sign){{v}}\(sign)b{{w}}\(sign)")
        #expect(text.variables == ["v", "w"])
        let (_, places) = try TemplateText.located("é\(sign){{v}}")
        #expect(places.map(\.offset) == [2])
    }

    @Test func `words are found and replaced beside combining signs`() {
        let text = "\u{301}ab\u{301} xab🇩🇩ab"
        #expect(text.places(of: "ab").count == 3 && text.places(of: "abc").isEmpty)
        #expect(text.replacingWord("ab", with: "").utf8.elementsEqual("\u{301}\u{301} x🇩🇩".utf8))
        #expect("aaa".places(of: "aa").count == 1 && "".places(of: "a").isEmpty)
        #expect("a@b@\u{301}c".splitAtLastSign("@")?.after.utf8.elementsEqual("\u{301}c".utf8) == true)
        #expect(" \u{A0}\n a b\t".trimmed == "a b" && " ".trimmed.isEmpty)
    }

    @Test func `signs are replaced, split at and quoted beside combining signs`() {
        #expect("a'\u{0301}b".replacingSign("'", with: "''").utf8.elementsEqual("a''\u{0301}b".utf8))
        #expect("a=\u{0301}b".splitAtSign("=")?.after.utf8.elementsEqual("\u{0301}b".utf8) == true)
        #expect("\u{0D4E}'x".shellWord(allowing: "-").hasPrefix("'"))
        #expect("a\r\nb\rc\n\nd".plainLines == ["a", "b", "c", "", "d"])
        #expect("a\r\nb\u{1B}[c".onOneLine == "a  b [c")
        #expect("a\u{1B}[2K\nb\u{9B}2J\u{202E}c\u{2028}d\u{2066}".withoutCommands == "a [2K b 2Jc d")
    }
}
