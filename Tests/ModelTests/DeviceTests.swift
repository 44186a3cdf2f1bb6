import Foundation
import Model
import Testing

struct LocaleTagTests {
    @Test(
        arguments: [
            ("de", "de"), ("DE", "de"), ("pt_br", "pt-BR"), ("PT-br", "pt-BR"), ("zh-hant-hk", "zh-Hant-HK"),
            ("zh_Hant_HK", "zh-Hant-HK"), ("de_DE.UTF-8", "de-DE"), ("en_US@rg=gbzzzz", "en-US"), ("es-419", "es-419"),
            ("sl-rozaj-biske", "sl-rozaj-biske"), ("en-u-ca-gregory", "en-u-CA-gregory"),
            ("", nil), ("C", nil), ("d", nil), ("de-", nil), ("de--AT", nil), ("d3", nil), ("de AT", nil), ("1de", nil),
            ("abcdefghi", nil), ("dé", nil), ("de-abcdefghi", nil), ("a-b-c-d-e-f-g-h-i", nil),
        ] as [(String, String?)])
    func `a locale tag may have any case and underscores`(text: String, tag: String?) {
        #expect(LocaleTag(text)?.description == tag)
    }

    @Test func `a tag survives JSON`() throws {
        let tags = [try #require(LocaleTag("zh_hant_hk"))]
        let data = try JSONEncoder().encode(tags)
        #expect(String(decoding: data, as: UTF8.self) == "[\"zh-Hant-HK\"]")
        #expect(try JSONDecoder().decode([LocaleTag].self, from: data) == tags)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([LocaleTag].self, from: Data("[\"?\"]".utf8)) }
    }
}

struct AppVersionTests {
    @Test(
        arguments: [
            ("4.2", [4, 2]), ("4.2.0", [4, 2]), ("4", [4]), ("0", [0]), ("0.0", [0]), ("4.10", [4, 10]),
            ("4.2-beta", [4, 2]),
            ("4.2+7", [4, 2]), ("1.0 (45)", [1]), ("007", [7]), ("", nil), ("v4", nil), ("4.", nil), (".4", nil),
            ("4..2", nil), ("1.2.3.4.5.6.7.8.9", nil), ("99999999999999999999", nil), ("-1", nil), ("٤", nil),
        ] as [(String, [UInt64]?)])
    func `dotted numbers are a version`(text: String, components: [UInt64]?) {
        #expect(AppVersion(text)?.components == components)
    }

    @Test func `versions are ordered by their numbers, and so are their sort keys`() throws {
        let texts = [
            "0", "0.0.1", "0.9", "0.10", "1", "1.0.1", "1.2", "1.9.9", "1.10", "2", "4.2", "4.9", "4.10", "4.10.1",
            "9.9",
            "10", "99", "100", "1000.1", "18446744073709551615",
        ]
        let versions = try texts.map { try #require(AppVersion($0)) }
        for (left, first) in versions.enumerated() {
            for (right, second) in versions.enumerated() {
                #expect((first < second) == (left < right))
                let isBefore = Array(first.sortKey.utf8).lexicographicallyPrecedes(Array(second.sortKey.utf8))
                #expect(isBefore == (left < right))
            }
        }
    }

    @Test func `versions that differ in zeros only are the same`() {
        #expect(AppVersion("4.2") == AppVersion("4.2.0.0"))
        #expect(AppVersion("4.2")?.sortKey == AppVersion("4.2.0")?.sortKey)
    }
}

struct DeviceTokenTests {
    static let hex = String(repeating: "0a1b2c3d", count: 8)

    @Test(arguments: [
        hex, hex.uppercased(), "<\(hex)>", "0a1b2c3d 0a1b2c3d 0a1b2c3d 0a1b2c3d 0a1b2c3d 0a1b2c3d 0a1b2c3d 0a1b2c3d",
        " \(hex) ",
    ])
    func `hex of any case is read, with brackets and blanks`(text: String) {
        #expect(DeviceToken(hex: text)?.hex == Self.hex)
    }

    @Test(arguments: [
        "", "(null)", "abc", String(hex.dropLast()), String(hex.dropLast(2)), hex + "x", "0x" + hex,
        String(repeating: "ab", count: 101),
    ])
    func `text that is not a token is refused`(text: String) {
        #expect(DeviceToken(hex: text) == nil)
    }

    @Test(arguments: [31, 32, 100, 101]) func `a token has 32 to 100 bytes`(count: Int) {
        #expect((DeviceToken(bytes: Array(repeating: 7, count: count)) != nil) == (32...100).contains(count))
    }

    @Test func `a printed token shows its last eight characters only`() throws {
        let token = try #require(DeviceToken(hex: Self.hex))
        #expect("\(token)" == "…0a1b2c3d")
        #expect(token.redacted == "…0a1b2c3d")
    }
}
