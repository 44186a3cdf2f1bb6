import Foundation
import Model
import Testing

struct `JSON escaping` {
    @Test(arguments: [
        ("", ""), ("plain", "plain"), ("Grüße 🎙 \u{2028}\u{7F}/", "Grüße 🎙 \u{2028}\u{7F}/"),
        ("say \"hi\"", #"say \"hi\""#), (#"C:\new"#, #"C:\\new"#), ("a\nb\rc\td", #"a\nb\rc\td"#),
        ("\u{0}\u{1}\u{8}\u{C}\u{F}\u{10}\u{1F}", #"\u0000\u0001\u0008\u000c\u000f\u0010\u001f"#), ("\r\n", #"\r\n"#),
    ])
    func `escapes what it must and nothing else`(text: String, escaped: String) {
        #expect(JSONEscaping.quoted(text) == "\"\(escaped)\"")
        var bytes = Array("before".utf8)
        JSONEscaping.append(text, to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == "before\(escaped)")
    }

    /// Every text that is given back by another reader of JSON is escaped rightly.
    @Test func `is undone by a decoder, whatever the text`() throws {
        var generator = SystemRandomNumberGenerator()
        let alphabet: [Unicode.Scalar] = ["\"", "\\", "\n", "a", "é", "😀", "\u{1}", "\u{1F}", "\u{7F}", "/"]
        for length in 0..<200 {
            var text = String.UnicodeScalarView()
            for _ in 0..<length { text.append(alphabet.randomElement(using: &generator) ?? "a") }
            let quoted = JSONEscaping.quoted(String(text))
            #expect(try JSONDecoder().decode(String.self, from: Data(quoted.utf8)) == String(text))
            #expect(quoted.utf8.count <= String(text).utf8.count * JSONEscaping.growthMax + 2)
        }
    }

    @Test func `takes any byte of ASCII`() throws {
        let text = String(String.UnicodeScalarView((0..<128).compactMap { Unicode.Scalar(UInt8($0)) }))
        #expect(try JSONDecoder().decode(String.self, from: Data(JSONEscaping.quoted(text).utf8)) == text)
    }

    @Test(arguments: [
        ("", 0xCBF2_9CE4_8422_2325 as UInt64), ("a", 0xAF63_DC4C_8601_EC8C), ("foobar", 0x8594_4171_F739_67E8),
    ])
    func `FNV-1a gives its published numbers`(text: String, hash: UInt64) {
        #expect(FNV1a.hash(text) == hash)
        #expect(FNV1a.hash(bytes: Array(text.utf8).span) == hash)
    }
}
