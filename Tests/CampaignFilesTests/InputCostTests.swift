@testable import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// What reads text of others costs no more than its size allows, whatever the text is.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct InputCostTests {
    private static let yaml = [
        "a: ", "x", "- ", "[", "]", "{", "}", ", ", "\n", "\n  ", "&a ", "*a ", "\"", "'", "? ", ": ", "| ", "> ", "#",
        "%",
        "---\n", "!!str ", "<<: ", "\t", "\u{0600}", "é", "\\", "§ ", "{{v}}", "\n\n",
    ]
    private static let audience = [
        "locale = \"de\"", " and ", " or ", "not ", "(", ")", "tag(\"x\")", "country in (\"DE\", ", "5", "x", "§ ", "'",
        "\\\\",
        "everyone ", ",", "last_seen within 3 days", "!", "é", "\u{0600}", "version > 1.",
    ]
    private static let sql = [
        "SELECT ", "id ", "FROM ", "device_view ", "(", ")", "'", "\\\"", "--", "/*", "*/", ";", "[", "`", "x", ",",
        "\\n  ",
    ]
    private static let words = [
        "{{v}}", "{{", "}}", "{", "}", "{{device.model}}", "{{ ", "é", "x ", "  ", "§", "\u{0301}",
    ]

    private static let campaign = """
        campaign: a
        topic: com.example.wendercast
        push_type: alert
        template: a

        """

    private func expectLinear(
        _ patterns: [LinearCost.Pattern], upTo bytesMax: Int = 16_384,
        sourceLocation: Testing.SourceLocation = #_sourceLocation, _ body: (String) -> Void
    ) {
        for pattern in patterns {
            let fault = LinearCost.fault(of: pattern, upTo: bytesMax, body)
            #expect(fault == nil, sourceLocation: sourceLocation)
        }
    }

    /// - Parameter known: looked at up to the largest text that comes by way of the web.
    private func expectLinear(
        of fragments: [String], head: String = "", tail: String = "", and known: [String] = [],
        sourceLocation: Testing.SourceLocation = #_sourceLocation, _ body: (String) -> Void
    ) {
        expectLinear(
            (known + LinearCost.combining).map { .init($0, head: head, tail: tail) }, upTo: 256 << 10,
            sourceLocation: sourceLocation, body)
        LinearCost.seeds { seed in
            let pattern = LinearCost.Pattern(of: fragments, seed: seed, head: head, tail: tail)
            expectLinear([pattern], sourceLocation: sourceLocation, body)
        }
    }

    @Test func `a campaign file`() {
        let known = ["a: 1\n", "- [", "%TAG !a! x\n", "*a, ", "\"  \n", "? [a]\n: 1\n", "k\u{0600}: {{v}}\n"]
        expectLinear(of: Self.yaml, and: known) { _ = CampaignFile.read(text: $0, path: "a.yaml") }
        expectLinear(of: Self.yaml, head: Self.campaign + "variables:\n  a: &a ", tail: "\n", and: known) {
            _ = CampaignFile.read(text: $0, path: "a.yaml")
        }
    }

    @Test func `the audience of a file`() {
        expectLinear(
            of: Self.audience, head: Self.campaign + "audience: '", tail: "'\n", and: ["§ ", "country = 5 or "]
        ) {
            _ = CampaignFile.read(text: $0, path: "a.yaml")
        }
        expectLinear(of: Self.sql, head: Self.campaign + "audience_sql: \"", tail: "\"\n", and: ["("]) {
            _ = CampaignFile.read(text: $0, path: "a.yaml")
        }
    }

    @Test func `an audience expression`() {
        expectLinear(of: Self.audience, and: ["§ ", "tag(\"x\") or ", "not ", "("]) { _ = AudienceParser.parse($0) }
    }

    @Test func `a template file`() {
        let known = ["{{v}}", "     ", "{{1}}", "x  \n  "]
        expectLinear(of: Self.words, head: "template: a\nalert: {title: \"", tail: "\"}\n", and: known) {
            _ = TemplateFile.read(text: $0, path: "a.yaml")
        }
        expectLinear(of: Self.yaml, head: "template: a\nalert: {title: x}\ncustom:\n  a: &a ", tail: "\n", and: known) {
            _ = TemplateFile.read(text: $0, path: "a.yaml")
        }
    }

    @Test func `what a template shows`() {
        expectLinear(of: Self.words + ["TODO", "[", "{", "undefined"], and: ["TODO ", "a "]) { text in
            guard let parsed = try? TemplateText(parsing: text) else { return }
            var template = Template(name: "a")
            let locale = LocaleTag(written: "en").map {
                Template.LocalizedAlert(locale: $0, title: nil, subtitle: nil, body: parsed)
            }
            template.alert = .localized([locale].compactMap(\.self))
            _ = template.lint(["v": text])
            _ = template.links(["v": text])
        }
    }

    @Test func `the kind of a file`() {
        let signs = ["a", "\"", "'", ":", " ", "\n", "{", "é", "campaign", "a:", "\t"]
        for head in ["", "{"] {
            expectLinear(of: signs, head: head, and: ["a", " ", "a:", "\" ", ":"]) {
                _ = JSONSchema.File.of(path: "a.yaml", unsaved: $0)
            }
        }
    }

    private static func forms(_ shape: ValueShape) -> Set<TextForm> {
        switch shape {
        case .text(_, _, let form): [form]
        case .object(let shape): forms(shape)
        case .list(let element): forms(element)
        case .map(let key, let value): forms(key).union(forms(value))
        case .either(let shapes): shapes.reduce(into: []) { $0.formUnion(forms($1)) }
        case .integer, .number, .boolean, .choice, .anything: []
        }
    }

    private static func forms(_ shape: ObjectShape) -> Set<TextForm> {
        shape.keys.reduce(into: []) { $0.formUnion(forms($1.value)) }
    }

    @Test func `every form of a text`() {
        let shapes = [CampaignKeys.shape, TemplateKeys.shape, ConfigurationKeys.shape]
        let forms = shapes.reduce(into: Set<TextForm>()) { $0.formUnion(Self.forms($1)) }
        let patterns =
            [ScalarPattern.number, ScalarPattern.integer]
            + forms.compactMap { form in
                switch form {
                case .free, .freeOrNothing: nil
                case .pattern(let pattern), .patternOrNumber(let pattern), .patternOfPlain(let pattern),
                    .patternOrZero(let pattern):
                    pattern
                }
            }
        #expect(patterns.count > 15)
        for pattern in patterns {
            for unit in ["a", "1", "1m", "a.", "a ", "🇩"] {
                for head in ["", "https://", "2026-12-01"] {
                    let long = LinearCost.Pattern(unit, head: head, tail: " b")
                    expectLinear([long]) { _ = TextForm.matches($0, pattern) }
                }
            }
        }
    }

    @Test func `lines of devices and members`() {
        let json = [
            "{\"user_id\": \"x\"}", "\n", "{", "}", "[", "]", "\"", "\\", "\\u0041", "\\ud800", ":", ",", "1", "-",
            "e9", "null",
            "true", " ", "é", "\"tags\": [\"a\"]", "\"attributes\": {", "\u{0}",
        ]
        expectLinear(of: json, and: ["[", "{\"a\":", "\"\\u0041\"", "1,"]) { text in
            var devices = ArrivingDevices()
            devices.append(Array(text.utf8))
            devices.finish()
            while devices.next() != nil {}
            var members = ArrivingMembers()
            // In pieces: a line that is not whole yet is not looked at again and again.
            for piece in Array(text.utf8).chunked(by: 64) {
                members.append(piece)
                while members.next() != nil {}
            }
            members.finish()
            while members.next() != nil {}
        }
    }

    @Test func `a CSV file`() throws {
        let folder = try TemporaryDirectory()
        let cells = [
            ",", "\"", "\"\"", "\n", "\r", "x", "'", "=", ";", "\t", " ", "é", "\u{0600}", "com.example.app", "sandbox",
        ]
        expectLinear(of: cells, head: "token,environment,topic\n", and: ["'", "\"\n", "\"\"", "'=\n", "''"]) { text in
            guard let path = try? folder.write(Array(text.utf8), to: "devices.csv") else { return }
            let reader = DeviceFileReader(path: path, rejectsPath: folder.file("rejects.csv"))
            _ = try? reader.forEachBatch(size: 1000) { _ in }
            _ = try? SegmentFileReader(path: path).forEachBatch(size: 1000) { _ in }
        }
    }

    @Test func `the tags of a CSV file`() throws {
        let folder = try TemporaryDirectory()
        let row = String(repeating: "ab", count: 32) + ",sandbox,com.example.app,"
        expectLinear(of: [";", " ", "x", "é"], head: "token,environment,topic,tags\n" + row) { text in
            guard let path = try? folder.write(Array(text.utf8), to: "devices.csv") else { return }
            let reader = DeviceFileReader(path: path, rejectsPath: folder.file("rejects.csv"))
            _ = try? reader.forEachBatch(size: 1000) { _ in }
        }
    }

    @Test func `small texts`() {
        let signs = [
            "z", "0", "aF", "<", ">", " ", "Zz9_", "fanfare_", "-", "+", "é", "\u{0301}", "*", "/", ",", "1-5", "@",
            "MON", "s",
            "1h", "T", ":", "2026-", "\n", "\r", "'", "\"", "=",
        ]
        expectLinear(of: signs, and: ["z", " ", "< ", "f", "fanfare_", "aB3", "0 ", "z ", "fanfare_z "]) {
            _ = Redaction.withoutTokens($0)
        }
        expectLinear(of: signs, and: [" ", "'", "\""]) { text in
            _ = CSVLine.text([text, text])
            _ = text.onOneLine
            _ = text.plainLines
        }
        expectLinear(of: signs, and: ["*,", "* ", "1-5/2,", "1h"]) { text in
            _ = try? CronExpression(text)
            _ = WrittenDuration.parse(text)
            _ = WallTime(text)
            _ = LocaleTag(text)
            _ = AppVersion(text)
            _ = DeviceToken(hex: text)
            _ = StopOrder.Scope(text)
            _ = StopOrder.Scope("run " + text)
            _ = text.trimmed
            _ = text.places(of: "zz")
            _ = Suggestion.nearest(to: text, among: ["campaign", text])
        }
        expectLinear(of: Self.words, and: ["{{v}}", "{{", "{"]) { _ = try? TemplateText(parsing: $0) }
    }

    // MARK: Bounds

    /// Each level uses the one before twice: as many values as two to the power of the levels.
    private static func bomb(levels: Int, inKey: Bool) -> String {
        var text = "a0: &a0 [x, x]\n"
        for level in 1...levels { text += "a\(level): &a\(level) [*a\(level - 1), *a\(level - 1)]\n" }
        return text + (inKey ? "? *a\(levels)\n: 1\n" : "")
    }

    @Test(arguments: [true, false]) func `aliases that multiply cost no more than the bound`(inKey: Bool) {
        for levels in [16, 20, 45, 500] {
            let (campaign, diagnostics) = CampaignFile.read(
                text: Self.bomb(levels: levels, inKey: inKey), path: "a.yaml")
            #expect(campaign == nil && diagnostics.contains { $0.what == "more than 100000 values" })
        }
    }

    @Test func `levels behind aliases are levels`() {
        var text = "- &a0 " + String(repeating: "[", count: 30) + String(repeating: "]", count: 30) + "\n"
        for line in 1...80 {
            let inner = String(repeating: "[", count: 30) + "*a\(line - 1)" + String(repeating: "]", count: 30)
            text += "- &a\(line) \(inner)\n- {? *a\(line) : 1}\n"
        }
        let (_, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.map(\.what) == ["nested too deeply"])
    }

    @Test func `text behind aliases is text`() {
        let long = String(repeating: "{{v}} ", count: 10_000)
        let text =
            "custom:\n  a: &a \"\(long)\"\n  b: [\(Array(repeating: "*a", count: 1000).joined(separator: ", "))]\n"
        let (_, diagnostics) = TemplateFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.map(\.what) == ["more than 2097152 bytes of text"])
    }

    @Test func `an alias stands for a value, a list and a key`() {
        let text = Self.campaign + "audience: everyone\nvariables: {a: &v one, b: *v, *v : c}\n"
        let (campaign, diagnostics) = CampaignFile.read(text: text, path: "a.yaml")
        #expect(diagnostics.filter { $0.severity == .error }.isEmpty, "\(diagnostics)")
        #expect(campaign?.variables == ["a": "one", "b": "one", "one": "c"])
    }

    @Test(arguments: [
        "1.5e-9223372036854775808", "10e9223372036854775807", "1e-9223372036854775809", "1e400",
        "0.10e9223372036854775807",
    ])
    func `a number with a wild exponent is refused`(number: String) {
        let text = "template: a\nalert: {title: x}\ncustom: {a: \(number)}\n"
        let (template, diagnostics) = TemplateFile.read(text: text, path: "a.yaml")
        #expect(template == nil && diagnostics.contains { $0.what.contains("cannot be kept exactly") })
    }

    @Test func `problems of a file are named up to a number`() {
        let keys = (0..<20_000).map { "key\($0): 1\n" }.joined()
        let (_, diagnostics) = CampaignFile.read(text: keys, path: "a.yaml")
        #expect(diagnostics.count == 201)
        let (_, problems) = AudienceParser.parse(String(repeating: "§ ", count: 10_000))
        #expect((1...60).contains(problems.count))
    }
}

extension Array {
    fileprivate func chunked(by size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
