import Foundation
import Model
import Rendering
import Sending
import Testing

/// Templates, values and devices at random, the same ones in every run.
struct PayloadRandomTests {
    /// A JSON value with its texts as bytes, so that equal means equal byte by byte.
    private indirect enum Tree: Hashable {
        case null
        case boolean(Bool)
        case number(Double)
        case text([UInt8])
        case array([Tree])
        case object([[UInt8]: Tree])

        init(_ text: String) { self = .text(Array(text.utf8)) }

        /// The first path at which two values differ, in words; nil when they are equal.
        func difference(from other: Tree, at path: String = "") -> String? {
            switch (self, other) {
            case (.object(let left), .object(let right)) where left.keys == right.keys:
                return left.keys.lazy.compactMap { key in
                    let member = "\(path)/\(String(decoding: key, as: UTF8.self).debugDescription)"
                    return left[key].flatMap { own in right[key].flatMap { own.difference(from: $0, at: member) } }
                }.first
            case (.array(let left), .array(let right)) where left.count == right.count:
                return zip(left, right).enumerated().lazy.compactMap { index, pair in
                    pair.0.difference(from: pair.1, at: "\(path)/\(index)")
                }.first
            default: return self == other ? nil : "\(path): \(self) and not \(other)"
            }
        }

        /// What a parser found.
        init(parsed: Any) {
            switch parsed {
            case let text as String: self.init(text)
            case let list as [Any]: self = .array(list.map { Tree(parsed: $0) })
            case let object as [String: Any]:
                self = .object(
                    Dictionary(uniqueKeysWithValues: object.map { (Array($0.key.utf8), Tree(parsed: $0.value)) }))
            case let number as NSNumber: self = .number(number.doubleValue)
            default: self = .null
            }
        }
    }

    /// No U+FEFF: Foundation's parser drops it at the start of a text.
    private static let pieces = [
        "a", " ", "\"", "\\", "\n", "\r", "\t", "\u{0}", "\u{1F}", "\u{7F}", "é", "e\u{301}", "👩‍👩‍👧‍👦", "🇩🇪", "שלום",
        "\u{2028}",
        "{", "}", "}}", "/", "𝕊", "long enough to be copied whole",
    ]
    private static let variables = ["v1", "v2", "v3"]
    private static let fields: [AudienceField] = [.model, .osVersion, .attribute("name")]

    /// Everything one payload depends on.
    private struct Scene {
        var random: SeededGenerator
        var values: [String: String] = [:]
        var deviceValues: [AudienceField: String?] = [:]
        let badge: Int

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            badge = Int.random(in: 0...1_000_000, using: &random)
            for name in variables { values[name] = "x" + text(4) }
            for field in fields { deviceValues[field] = Bool.random(using: &random) ? text(6) : String?.none }
        }

        mutating func text(_ most: Int) -> String {
            (0..<Int.random(in: 0...most, using: &random)).compactMap { _ in pieces.randomElement(using: &random) }
                .joined()
        }

        mutating func templateText() -> TemplateText {
            let parts = (0..<Int.random(in: 0...5, using: &random)).map { _ -> TemplateText.Part in
                switch Int.random(in: 0..<3, using: &random) {
                case 0: .variable(variables.randomElement(using: &random) ?? "v1")
                case 1: .device(fields.randomElement(using: &random) ?? .model)
                default: .literal(text(5))
                }
            }
            return TemplateText(parts: parts)
        }

        mutating func value(_ depth: Int) -> TemplateValue {
            switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &random) {
            case 0: .null
            case 1: .boolean(Bool.random(using: &random))
            case 2: .integer(Int64.random(in: -1_000_000...1_000_000, using: &random))
            // Sixty-fourths: Foundation's parser rounds the last digits of others.
            case 3: .number(Double(Int.random(in: -1_000_000...1_000_000, using: &random)) / 64)
            case 4: .text(templateText())
            case 5: .array((0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth - 1) })
            default: .object(members(depth - 1))
            }
        }

        mutating func members(_ depth: Int) -> [TemplateValue.Member] {
            (0..<Int.random(in: 0...4, using: &random)).map { .init("\($0)\(text(2))", value(depth)) }
        }
    }

    private static func template(_ scene: inout Scene) -> Template {
        var template = Template(name: "t")
        template.alert = .localized(
            ["en", "de", "pt-BR"].compactMap { LocaleTag($0) }.map {
                .init(locale: $0, title: scene.templateText(), subtitle: nil, body: scene.templateText())
            })
        template.badge = Bool.random(using: &scene.random) ? .increment(1) : .number(7)
        template.threadID = scene.templateText()
        template.custom = scene.members(3)
        return template
    }

    private static func filled(_ text: TemplateText, _ scene: Scene) -> Tree {
        Tree(
            text.parts.map { part in
                switch part {
                case .literal(let literal): literal
                case .variable(let name): scene.values[name] ?? ""
                case .device(let field): (scene.deviceValues[field] ?? nil) ?? ""
                }
            }.joined())
    }

    private static func filled(_ value: TemplateValue, _ scene: Scene) -> Tree {
        switch value {
        case .null: .null
        // The parser gives truth values as numbers.
        case .boolean(let flag): .number(flag ? 1 : 0)
        case .integer(let number): .number(Double(number))
        case .number(let number): .number(number)
        case .text(let text): filled(text, scene)
        case .array(let values): .array(values.map { filled($0, scene) })
        case .object(let members): .object(filled(members, scene))
        }
    }

    private static func filled(_ members: [TemplateValue.Member], _ scene: Scene) -> [[UInt8]: Tree] {
        Dictionary(uniqueKeysWithValues: members.map { (Array($0.key.utf8), filled($0.value, scene)) })
    }

    private static func expected(_ template: Template, _ locale: Int, _ scene: Scene) -> Tree {
        guard case .localized(let blocks) = template.alert else { return .null }
        let texts = [("title", blocks[locale].title), ("body", blocks[locale].body)]
        let alert = texts.map { (Array($0.0.utf8), $0.1.map { filled($0, scene) } ?? .null) }
        let badge = template.badge == .increment(1) ? scene.badge : 7
        let aps: [[UInt8]: Tree] = [
            Array("alert".utf8): .object(Dictionary(uniqueKeysWithValues: alert)),
            Array("badge".utf8): .number(Double(badge)),
            Array("thread-id".utf8): template.threadID.map { filled($0, scene) } ?? .null,
        ]
        var whole = filled(template.custom, scene)
        whole[Array("aps".utf8)] = .object(aps)
        return .object(whole)
    }

    /// Bytes of a text inside JSON: by hand, to count against.
    private static func escapedByteCount(_ text: String) -> Int {
        text.utf8.reduce(0) { sum, byte in
            switch byte {
            case 0x22, 0x5C, 0x0A, 0x0D, 0x09: sum + 2
            case 0..<0x20: sum + 6
            default: sum + 1
            }
        }
    }

    private static func countedBytes(_ prototype: PayloadPrototype, _ values: [String?], badge: Int) -> Int {
        prototype.pieces.reduce(prototype.commonByteCount) { sum, piece in
            switch piece {
            case .bytes: sum
            case .field(let index): sum + escapedByteCount(values[index] ?? "")
            case .badge: sum + "\(badge)".count
            case .secondsAfterSending: sum + 10
            case .reference: sum + 24
            }
        }
    }

    @Test(arguments: 0..<20) func `any payload is valid JSON, says what it should and has the counted size`(seed: Int)
        throws
    {
        for step in 0..<50 {
            var scene = Scene(seed: UInt64(seed * 50 + step))
            let template = Self.template(&scene)
            let renderer = try PayloadRenderer(template: template, pushType: .alert, variables: scene.values)
            let values = renderer.fields.map { scene.deviceValues[$0] ?? nil }
            for (index, prototype) in renderer.prototypes.enumerated() {
                let payload = prototype.payload(fields: values, badge: scene.badge)
                let parsed = Tree(parsed: try JSONSerialization.jsonObject(with: Data(payload)))
                #expect(parsed.difference(from: Self.expected(template, index, scene)) == nil)
                #expect(payload.count == Self.countedBytes(prototype, values, badge: scene.badge))
                let longest = values.map { Self.escapedByteCount($0 ?? "") }.max() ?? 0
                let isWithin = payload.count <= prototype.worstCaseByteCount(fieldMaxBytes: longest)
                #expect(isWithin || scene.badge > 99_999)
            }
        }
    }

    /// Which block a device gets, worked out from the definition and not from the code: its own tag, its language in
    /// its script and region, in its script, its language alone, and of Chinese in the traditional script the text for
    /// Taiwan.
    private static func block(for device: String, among tags: [String], usual: String?) -> String {
        if tags.contains(device) { return device }
        let language = String(device.prefix { $0 != "-" })
        let script = whole(device == language ? "\(language)-?" : device).split(separator: "-")[1]
        let wanted = (device == language ? [] : [whole(device)]) + ["\(language)-\(script)", language]
        for name in wanted {
            if let match = tags.first(where: { whole($0) == name }) { return match }
        }
        if language == "zh", script == "Hant", tags.contains("zh-Hant-TW") { return "zh-Hant-TW" }
        return usual.flatMap { tags.contains($0) ? $0 : nil } ?? tags[0]
    }

    /// The tag with the script that goes without saying in it; a language alone stays so.
    private static func whole(_ tag: String) -> String {
        let parts = tag.split(separator: "-").map(String.init)
        guard parts.count > 1 else { return tag }
        let script = parts[1].count == 4 ? parts[1] : parts[0] == "zh" ? "Hans" : "Latn"
        return ([parts[0], script] + (parts[1].count == 4 ? parts[2...] : parts[1...])).joined(separator: "-")
    }

    @Test func `any device gets the nearest text that it understands, then the default`() throws {
        var random = SeededGenerator(seed: 11)
        let languages = ["de", "en", "pt", "zh"]
        let rest = ["", "-AT", "-BR", "-Hant", "-Hant-HK", "-Hant-TW", "-Latn-419"]
        let all = languages.flatMap { language in rest.map { language + $0 } }
        for _ in 0..<2000 {
            let tags = Array(all.shuffled(using: &random).prefix(Int.random(in: 1...12, using: &random)))
            var template = Template(name: "t")
            template.alert = .localized(
                try tags.map {
                    .init(
                        locale: try #require(LocaleTag($0)), title: TemplateText(literal: $0), subtitle: nil, body: nil)
                })
            let usual = Bool.random(using: &random) ? tags.randomElement(using: &random) : nil
            template.defaultLocale = usual.flatMap { LocaleTag($0) }
            let renderer = try PayloadRenderer(template: template, pushType: .alert, variables: [:])
            for device in all + ["fr", "fr-CA"] {
                let written = Bool.random(using: &random) ? device.lowercased() : device.replacing("-", with: "_")
                let choice = renderer.choice(forLocale: written)
                try #require(choice.localeIndex == choice.prototype)
                try #require(
                    renderer.localeName(choice.prototype) == Self.block(for: device, among: tags, usual: usual),
                    "\(device) among \(tags)")
            }
        }
    }
}
