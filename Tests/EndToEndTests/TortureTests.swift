import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Thirty languages and every kind of text that has ever broken a sender, from the file to APNs' side.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Texts that break senders` {
    private static let locales = [
        "en", "de", "fr", "es", "es-419", "pt-BR", "pt-PT", "it", "nl", "sv", "da", "nb", "fi", "pl", "cs", "sk", "hu",
        "ro", "el", "tr", "ru", "uk", "ar", "he", "fa", "hi", "th", "ja", "ko", "zh-Hant",
    ]

    /// Emoji with joiners and skin tones, right-to-left with marks, quotes, backslashes, all control characters,
    /// combining characters in two spellings, the ends of planes, and what looks like markup.
    private static let pieces = [
        "👩‍👩‍👧‍👦👍🏽🏳️‍🌈", "مرحبا \u{202B}بالعالم\u{202C} \u{200F}", "שלום \"עולם\"", #"C:\new\table "quoted" 'single'"#,
        String(String.UnicodeScalarView((0...31).compactMap(UnicodeScalar.init))), "\u{7F}\u{80}\u{9F}\u{2028}\u{2029}",
        "e\u{301} \u{E9}", "\u{FFFD}\u{FFFF}\u{10FFFF}", "</script>{\"aps\":{}} %s %@ ${x} {single}", "日本語 한국어 ไทย हिन्दी",
    ]

    private static func title(_ number: Int) -> String { pieces[number % pieces.count] + " \(locales[number])" }
    private static func body(_ number: Int) -> String {
        pieces[(number + 1) % pieces.count] + pieces[(number + 4) % pieces.count]
    }
    private static let value = "\"\\\u{1}\t\u{1F}\u{0}🎧\u{202E}end"

    /// A double-quoted YAML text in plain ASCII.
    private static func yaml(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar in
            switch scalar {
            case "\"", "\\": "\\\(scalar)"
            case " "..."~": "\(scalar)"
            default:
                {
                    let digits = String(scalar.value, radix: 16)
                    return "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
                }()
            }
        }
        return "\"\(escaped.joined())\""
    }

    /// A JSON string with nothing escaped but what must be (RFC 8259 section 7).
    private static func json(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar in
            switch scalar.value {
            case 0x22: "\\\""
            case 0x5C: "\\\\"
            case 0x09: "\\t"
            case 0x0A: "\\n"
            case 0x0D: "\\r"
            case 0..<0x10: "\\u000" + String(scalar.value, radix: 16)
            case 0x10..<0x20: "\\u00" + String(scalar.value, radix: 16)
            default: String(scalar)
            }
        }
        return "\"\(escaped.joined())\""
    }

    private func write(to place: Installation) throws {
        let blocks = Self.locales.indices.map { number in
            "  \(Self.locales[number]): {title: \(Self.yaml(Self.title(number))), "
                + "body: \(Self.yaml(Self.body(number) + "{{value}}"))}"
        }
        try place.folder.write(
            (["template: torture", "default_locale: en", "alert:"] + blocks
                + [#"custom: {"k \"\\": [null, true, -1, 0.5, "{{device.installation_id}}"]}"#, ""])
                .joined(separator: "\n"),
            to: "templates/torture.yaml")
        try place.folder.write(
            """
            campaign: torture
            topic: \(Installation.topic)
            push_type: alert
            template: torture
            audience: everyone
            variables: {value: \(Self.yaml(Self.value))}

            """,
            to: "campaigns/torture.yaml")
        try place.folder.write(
            "token,environment,topic,installation_id,locale\n"
                + place.tokens.enumerated().map {
                    "\($1),production,\(Installation.topic),\"say \"\"\($0)\"\" \\🎧\",\(Self.locales[$0])\n"
                }.joined(),
            to: "devices.csv")
    }

    @Test func `arrive byte for byte, in thirty languages`() throws {
        let place = try Installation(devices: Self.locales.count) { $0.logsPayloads = true }
        try write(to: place)
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        let checked = try place.fanfare("validate", "campaigns/torture.yaml")
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
        let run = try place.run("torture")
        #expect(run.status == 0, "\(run.errors)")
        let log = place.simulator.log()
        #expect(log.count == Self.locales.count)
        #expect(log.allSatisfy { $0.status == 200 })
        for entry in log {
            let number = try #require(place.tokens.firstIndex(of: entry.token ?? ""))
            let expected =
                #"{"aps":{"alert":{"title":\#(Self.json(Self.title(number))),"#
                + #""body":\#(Self.json(Self.body(number) + Self.value))}},"#
                + #""k \"\\":[null,true,-1,0.5,\#(Self.json("say \"\(number)\" \\🎧"))]}"#
            #expect(entry.payload == Array(expected.utf8), "\(Self.locales[number])")
            #expect(entry.payloadBytes == expected.utf8.count)
        }
    }
}
