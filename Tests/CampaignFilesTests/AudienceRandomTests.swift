import CampaignFiles
import Model
import Testing

/// Makes expressions and texts at random, the same ones in every run.
struct AudienceRandomTests {
    private static let fields: [AudienceField] = [
        .installationID, .userID, .environment, .locale, .timeZone, .country, .appVersion, .osVersion, .model,
        .alertsAllowed, .registeredAt, .lastSeenAt, .badge, .attribute("plan"), .attribute("a \"b\" \\"),
    ]
    private static let texts = ["DE", "", "it's", "a \"quoted\" \\ text", "é\u{301}😀", "and", "{{x}}", "a\nb"]

    private static func value(_ field: AudienceField, _ random: inout SeededGenerator) -> AudienceValue? {
        switch field.kind {
        case .text where field == .environment: .text(Bool.random(using: &random) ? "production" : "sandbox")
        case .text: texts.randomElement(using: &random).map { .text($0) }
        case .locale:
            ["de", "pt-BR", "zh-Hant-HK"].randomElement(using: &random).flatMap { LocaleTag($0) }.map { .locale($0) }
        case .version:
            AppVersion("\(Int.random(in: 0...20, using: &random)).\(Int.random(in: 0...200, using: &random))").map {
                .version($0)
            }
        case .boolean: .boolean(Bool.random(using: &random))
        case .time: .time(Timestamp(milliseconds: Int64.random(in: 0...4_000_000_000_000, using: &random)))
        case .number: .number(Double(Int.random(in: -5...500, using: &random)))
        }
    }

    private static func condition(_ random: inout SeededGenerator) -> AudienceExpression? {
        guard let field = fields.randomElement(using: &random), let value = value(field, &random),
            let other = Self.value(field, &random)
        else { return nil }
        let comparisons: [ComparisonOperator] =
            switch field.kind {
            case .text, .locale, .boolean: [.equal, .notEqual]
            case .time: [.less, .lessOrEqual, .greater, .greaterOrEqual]
            case .version, .number: ComparisonOperator.allCases
            }
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return .isNull(field)
        case 1 where field.kind == .time:
            return .within(field, .seconds(60 * Int64.random(in: 1...100_000, using: &random)))
        case 2 where field.kind == .time || field.kind == .version || field.kind == .number:
            return .between(field, value, other)
        case 3 where field.kind != .time && field.kind != .boolean: return .oneOf(field, [value, other])
        default: return comparisons.randomElement(using: &random).map { .comparison(field, $0, value) }
        }
    }

    private static func expression(_ depth: Int, _ random: inout SeededGenerator) -> AudienceExpression {
        switch depth == 0 ? 9 : Int.random(in: 0..<10, using: &random) {
        case 0, 1: .all((0..<Int.random(in: 2...4, using: &random)).map { _ in expression(depth - 1, &random) })
        case 2, 3: .any((0..<Int.random(in: 2...4, using: &random)).map { _ in expression(depth - 1, &random) })
        case 4, 5: .not(expression(depth - 1, &random))
        case 6: .segment(texts.filter { !$0.isEmpty }.randomElement(using: &random) ?? "a")
        case 7: .tag("t")
        case 8: .everyone
        default: condition(&random) ?? .everyone
        }
    }

    @Test func `any expression survives printing and reading`() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<5000 {
            let expression = Self.expression(4, &random)
            let (again, problems) = AudienceParser.parse(expression.text)
            #expect(problems == [])
            #expect(again == expression)
            #expect(again?.text == expression.text)
        }
    }

    private func expectAnswer(_ text: String) {
        let (expression, problems) = AudienceParser.parse(text)
        #expect((expression == nil) == !problems.isEmpty)
        let length = text.unicodeScalars.count
        for problem in problems {
            #expect((0...length).contains(problem.offset))
            #expect(problem.offset + problem.length <= length)
        }
    }

    @Test func `random characters give an expression or a diagnostic`() {
        var random = SeededGenerator(seed: 2)
        let alphabet = Array("abz_09 .,-()=!<>'\"\\&|\n\t{}[]é😀“\u{0}\u{301}")
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...40, using: &random)).compactMap { _ in
                alphabet.randomElement(using: &random)
            }
            expectAnswer(String(text))
        }
    }

    @Test func `random words give an expression or a diagnostic`() {
        var random = SeededGenerator(seed: 3)
        let words = [
            "and", "or", "not", "in", "is", "null", "between", "within", "everyone", "true", "false", "(", ")", ",",
            "=",
            "!=", "<", ">=", "\"x\"", "'2026-11-01'", "4.2", "90", "days", "locale", "country", "app_version",
            "last_seen", "badge", "alerts_allowed", "segment", "tag", "attribute", "nothing", "-1", "\"",
        ]
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...20, using: &random)).compactMap { _ in
                words.randomElement(using: &random)
            }
            expectAnswer(text.joined(separator: " "))
        }
    }

    @Test func `valid expressions with a few characters changed give an expression or a diagnostic`() {
        var random = SeededGenerator(seed: 4)
        for _ in 0..<20_000 {
            var text = Array(Self.expression(3, &random).text)
            for _ in 0..<Int.random(in: 1...3, using: &random) where !text.isEmpty {
                let index = Int.random(in: text.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.remove(at: index)
                case 1: text.insert("(", at: index)
                default: text[index] = "\""
                }
            }
            expectAnswer(String(text))
        }
    }
}
