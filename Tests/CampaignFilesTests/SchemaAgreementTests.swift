@testable import CampaignFiles
import Foundation
import Model
import Testing

/// Documents made at random from the shapes of the files, the same ones in every run, given to an editor's schema and to
/// `validate`: the schema refuses nothing that `validate` takes, and both have one rule for names.
struct SchemaAgreementTests {
    private struct Kind: Sendable {
        let file: JSONSchema.File
        let base: String
        let shape: ObjectShape
        let read: @Sendable (String) -> [Diagnostic]
    }

    private static let kinds = [
        Kind(
            file: .campaign,
            base: "campaign: a\ntopic: com.example.a\npush_type: alert\ntemplate: a\naudience: everyone\n",
            shape: CampaignKeys.shape, read: { CampaignFile.read(text: $0, path: "f.yaml").1 }),
        Kind(
            file: .template, base: "template: a\n", shape: TemplateKeys.shape,
            read: { TemplateFile.read(text: $0, path: "f.yaml").1 }),
        Kind(
            file: .configuration,
            base: "store: a\napps: [{topic: com.example.a, certificate_path: a.pem}]\n", shape: ConfigurationKeys.shape,
            read: { ConfigurationFile.read(text: $0, path: "f.yaml").1 }),
    ]

    /// What a person may type where something else is expected, as YAML.
    private static let scalars = [
        "0", "1", "-1", "007", "+5", "2_000", "_5", "5_", "1__0", "+2_000", "\"5\"", "1.0", "1.5", ".5", "5.", "1e2",
        "0x1F", "0x1p-1", "0o17", ".inf", ".nan", "99999999999999999999", "-0", "+0", "00",
        "true", "false", "True", "FALSE", "yes", "no", "~", "null", "Null", "NULL", "\"\"", "\" \"", "\"null\"",
        "0s", "1h", "1h30m", "\"1h\"", "1H", "-1h", "1.5h", "+4h", "+0", "10 m", "400d", "2026-12-01",
        "2026-12-01T09:00", "\"2026-12-01 09:00\"", "2026-12-01t09:00", "2026-12-01T09:00:00Z",
        "\"22:00\"", "22:00", "9:5", "24:00", "2%", "2.%", ".5%", "+2%", "1e1%", "101%", "100/s", "1_000/m", "1e3/s",
        "a", "com.example.a", "a b", ".a", "a/b", "naïve", "日本", "Ünïcödé", "\"e\\u0301\"", "\"a\\u200b\"", "😀", "-a",
        "a.b",
        "de", "pt-BR", "pt_br", "de_DE.UTF-8", "zh-Hant-HK", "german", "run", "none", "drop", "recipient",
        "Europe/Berlin", "GMT+1", "\"0 9 * * *\"", "\" 0 9 * * *\"", "\"@daily\"", "\"@DAILY\"", "\"* *\"",
        "everyone", "\"segment(\\\"a\\\")\"", "\"SELECT id FROM device_view\"", "\"{{title}}\"", "\"a\\nb\"",
        "https://example.com/a", "HTTPS://example.com", "http://[::1]:8/a", "ftp://a", "\"127.0.0.1:0\"",
        "\"[::1]:80\"",
        "\"a:+80\"", "\"a:65536\"", "ABC123DEFG", "1234567890", "12345E6789", "[]", "{}", "[1, a]", "{a: 1}",
    ]

    private static func name(_ random: inout SeededGenerator) -> String {
        let pool = Array("aZ9_.-éßåЖ日本क्षी\u{301}٣Ⅷ½ /!{}😀\u{200B}\u{A0}".unicodeScalars)
        let count = [0, 1, 2, 5, 20, 99, 100, 101, 300].randomElement(using: &random) ?? 1
        // Often of one kind, so that long ones are right, too.
        let kinds = Bool.random(using: &random) ? [pool.randomElement(using: &random) ?? "a"] : pool
        return String(
            String.UnicodeScalarView((0..<count).compactMap { _ in kinds.randomElement(using: &random) }))
    }

    /// A value of a shape, or of none.
    private static func value(_ shape: ValueShape, _ depth: Int, _ random: inout SeededGenerator) -> String {
        func any() -> String { scalars.randomElement(using: &random) ?? "a" }
        if depth == 0 || Int.random(in: 0..<6, using: &random) == 0 { return any() }
        switch shape {
        case .text, .anything, .integer, .number:
            return shape.example.isEmpty || Bool.random(using: &random) ? any() : shape.example
        case .boolean: return Bool.random(using: &random) ? "true" : any()
        case .choice(let words): return Bool.random(using: &random) ? words.randomElement(using: &random) ?? "" : any()
        case .either(let shapes):
            return value(shapes.randomElement(using: &random) ?? .anything, depth, &random)
        case .list(let element):
            let count = Int.random(in: 0...2, using: &random)
            return "[" + (0..<count).map { _ in value(element, depth - 1, &random) }.joined(separator: ", ") + "]"
        case .map(_, let inner):
            let keys = ["a", "de", "pt-BR", "naïve", "\"a b\"", "1", "\"x.y\"", "_b"].shuffled(using: &random)
            let count = Int.random(in: 0...3, using: &random)
            return "{" + keys.prefix(count).map { "\($0): \(value(inner, depth - 1, &random))" }.joined(separator: ", ")
                + "}"
        case .object(let shape):
            let keys = shape.keys.filter { $0.isRequired || Int.random(in: 0..<3, using: &random) == 0 }
            return "{" + keys.map { "\($0.name): \(value($0.value, depth - 1, &random))" }.joined(separator: ", ") + "}"
        }
    }

    /// The right file with one key of a random value.
    private static func document(_ kind: Kind, _ random: inout SeededGenerator) -> String {
        guard let key = kind.shape.keys.randomElement(using: &random) else { return kind.base }
        let lines = kind.base.split(separator: "\n").filter { !$0.hasPrefix("\(key.name):") }
        return (lines + ["\(key.name): \(value(key.value, 4, &random))"]).joined(separator: "\n") + "\n"
    }

    @Test(arguments: 0..<3) func `the schema refuses nothing that validate takes`(index: Int) throws {
        let kind = Self.kinds[index]
        let schema = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: kind.file).utf8))
        var random = SeededGenerator(seed: UInt64(index) + 7)
        var taken = 0
        for _ in 0..<1200 {
            let text = Self.document(kind, &random)
            guard !kind.read(text).contains(where: { $0.severity == .error }) else { continue }
            taken += 1
            let problems = SchemaCheck.problems(of: text, against: schema)
            #expect(problems.isEmpty, "\(text)\(problems)")
        }
        #expect(taken > 120, "\(taken) documents were right")
    }

    @Test func `a name is right for both or for neither`() throws {
        let schema = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: .template).utf8))
        var random = SeededGenerator(seed: 13)
        var taken = 0
        for _ in 0..<600 {
            let name = Self.name(&random)
            let text = "template: \(JSONEscaping.quoted(name))\n"
            let isRight = TemplateFile.read(text: text, path: "f.yaml").1.isEmpty
            taken += isRight ? 1 : 0
            #expect(SchemaCheck.problems(of: text, against: schema).isEmpty == isRight, "\(text)")
        }
        #expect((60...540).contains(taken), "\(taken) names were right")
    }

    @Test(arguments: [("ü", 100, true), ("日", 100, true), ("a", 101, false), ("ü", 300, false), ("!", 1, false)])
    func `letters of any script make a name of at most 100`(letter: String, count: Int, isRight: Bool) throws {
        let text = "template: \(String(repeating: letter, count: count))\n"
        let schema = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: .template).utf8))
        #expect(TemplateFile.read(text: text, path: "f.yaml").1.isEmpty == isRight)
        #expect(SchemaCheck.problems(of: text, against: schema).isEmpty == isRight)
    }
}
