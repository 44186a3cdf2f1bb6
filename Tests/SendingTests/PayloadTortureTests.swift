import Foundation
import Model
import Rendering
import Sending
import Testing

/// Thirty languages with everything a text can hold, against JSON put together by hand.
struct PayloadTortureTests {
    /// Tag, title, body; `{{v}}` and `{{device.model}}` are filled in.
    private static let texts: [(tag: String, title: String, body: String)] = [
        ("en", "\"New\" on {{v}}", "It's \\out\\ — \t{{v}}\u{8}"), ("de", "„Neu“ bei {{v}}", "Jetzt hören: {{v}}!\r\n"),
        ("de-AT", "Servas {{v}}", "Ois leiwand\u{1F}"), ("fr", "« {{v}} »", "À l’écoute\u{A0}: {{v}}\u{202F}!"),
        ("es", "¡{{v}}!", "¿Ya? {{v}}…"), ("pt-BR", "Olá {{v}}", "já está no ar {{v}}"), ("pt-PT", "Olá {{v}}", "já"),
        ("it", "È {{v}}", "perché {{v}}"), ("nl", "’t {{v}}", "ĳs {{v}}"), ("sv", "Åäö {{v}}", "{{v}}"),
        ("da", "Æøå {{v}}", "{{v}}"), ("no", "Nei {{v}}", "no {{v}}"), ("fi", "Yö {{v}}", "{{v}}"),
        ("pl", "Żółć {{v}}", "zażółć gęślą jaźń {{v}}"), ("cs", "Příliš {{v}}", "žluťoučký {{v}}"),
        ("hu", "Árvíztűrő {{v}}", "{{v}}"), ("ro", "Țară {{v}}", "ș {{v}}"), ("tr", "İıĞğ {{v}}", "{{v}}"),
        ("el", "Νέο {{v}}", "Άκου τώρα {{v}}"), ("ru", "Новое {{v}}", "Слушайте {{v}}"), ("uk", "Її {{v}}", "ґ {{v}}"),
        ("ar", "جديد: {{v}}", "\u{202B}استمع الآن {{v}}\u{202C}"), ("he", "חדש {{v}}", "\u{200F}הקשיבו {{v}}"),
        ("hi", "नया {{v}}", "क्षत्रिय {{v}}"), ("th", "ใหม่ {{v}}", "น้ำ {{v}}"), ("ja", "「{{v}}」の新着", "今すぐ\u{2028}{{v}}"),
        ("ko", "새 {{v}}", "지금 {{v}}"), ("zh-Hans", "新：{{v}}", "听 {{v}}"), ("zh-Hant", "新：{{v}}", "聽 {{v}}\u{0}"),
        ("vi", "Mới {{v}}", "👩‍👩‍👧‍👦🇩🇪 e\u{301} {{v}} \u{7F}</script>{ {{device.model}} }}"),
    ]
    private static let value = "\"\\ \u{1}🎙️ ‏עברית\n"
    private static let model = "iPhone\u{2}\"17\""

    /// By scalars and not by bytes, so that a mistake of the renderer is not repeated here.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\"": "\\\""
            case "\\": "\\\\"
            case "\n": "\\n"
            case "\r": "\\r"
            case "\t": "\\t"
            case _ where scalar.value < 32: String(format: "\\u%04x", scalar.value)
            default: String(scalar)
            }
        }.joined()
    }

    private static func filled(_ text: String) -> String {
        escaped(text.replacingOccurrences(of: "{{v}}", with: value))
            .replacingOccurrences(of: "{{device.model}}", with: escaped(model))
    }

    private static func renderer() throws -> PayloadRenderer {
        var template = Template(name: "t")
        template.defaultLocale = LocaleTag("en")
        template.alert = .localized(
            try texts.map { row in
                .init(
                    locale: try #require(LocaleTag(row.tag)), title: try TemplateText(parsing: row.title),
                    subtitle: nil, body: try TemplateText(parsing: row.body))
            })
        template.threadID = try TemplateText(parsing: "{{v}}")
        template.custom = [.init("k\"\u{3}", .array([.text(try TemplateText(parsing: "{{v}}")), .null]))]
        return try PayloadRenderer(template: template, pushType: .alert, variables: ["v": value])
    }

    @Test func `there are thirty languages`() {
        #expect(Set(Self.texts.map(\.tag)).count == 30)
    }

    @Test(arguments: texts.map(\.tag)) func `a language comes out byte by byte as built by hand`(tag: String) throws {
        let renderer = try Self.renderer()
        let row = try #require(Self.texts.first { $0.tag == tag })
        let choice = renderer.choice(forLocale: tag)
        let value = Self.escaped(Self.value)
        let expected =
            "{\"aps\":{\"alert\":{\"title\":\"\(Self.filled(row.title))\",\"body\":\"\(Self.filled(row.body))\"},"
            + "\"thread-id\":\"\(value)\"},\"k\\\"\\u0003\":[\"\(value)\",null]}"
        let payload = renderer.prototypes[choice.prototype].payload(fields: [Self.model], badge: 0)
        #expect(payload == Array(expected.utf8))
        let parsed = try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
        #expect(parsed.count == 2)
    }
}
