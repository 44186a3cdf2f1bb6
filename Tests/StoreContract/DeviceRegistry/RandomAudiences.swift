package import Model
import Store
import TestSupport
import Testing

extension DeviceRegistryContract {
    @PromiseList static var randomAudiences: [Promise] {
        Promise("many random expressions run and split every topic in two") { store in
            let records = try population.map { number, change in try record(number, change) }
            _ = try await store.importDevices(records, now: noon)
            for name in ["fans", "a\"b'c"] {
                let members = try await store.importSegment(name, mode: .replace)
                try await members.append([.installation("install-2")])
                _ = try await members.commit(now: noon)
            }
            var random = RandomAudience(seed: 20_261_121)
            for _ in 0..<(Nightly.isOn ? 3_000 : 400) {
                let expression = random.expression(depth: 5)
                let selected = try await reached(expression, store)
                let others = try await reached(.not(expression), store)
                try #require(selected + others == records.count, "\(expression)")
            }
        }
    }

    private static func reached(_ expression: AudienceExpression, _ store: any AllRoles) async throws -> Int {
        try await store.reach(of: expression, topic: wendercast, pushType: .background, now: noon).total
    }
}

/// Expressions of any shape, their values of the kind the field asks for, and devices that have such values.
package struct RandomAudience {
    private static let texts = [
        "DE", "de", "", "%", "_", "'", "\"", "\\", "x' OR 1=1 --", ":p0", "ü", "\u{0}", "$.a", "*",
    ]
    private static let fields = AudienceField.named.map(\.field) + texts.map(AudienceField.attribute)

    private var generator: SeededGenerator

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// Each field may be missing.
    package mutating func device(_ index: Int) throws -> DeviceRecord {
        var device = try record(index)
        device.environment = Bool.random(using: &generator) ? .production : .sandbox
        device.userID = storable()
        device.locale = ["de", "de-AT", "den", "pt-BR", "zh-Hant-HK", nil].randomElement(using: &generator) ?? nil
        device.timeZone = ["Europe/Berlin", nil].randomElement(using: &generator) ?? nil
        device.country = storable()
        device.appVersion = ["4.2", "4.10", "4.10.1", "odd", nil].randomElement(using: &generator) ?? nil
        device.osVersion = ["4.9", "17.1", nil].randomElement(using: &generator) ?? nil
        device.model = storable()
        device.alertsAllowed = [true, false, nil].randomElement(using: &generator) ?? nil
        device.registeredAt = Bool.random(using: &generator) ? noon - .seconds(abs(number())) : nil
        device.lastSeenAt = Bool.random(using: &generator) ? noon - .seconds(abs(number())) : nil
        device.tags = (0..<Int.random(in: 0...3, using: &generator)).compactMap { _ in storable() }
        device.attributes = [:]
        for _ in 0..<Int.random(in: 0...3, using: &generator) { device.attributes?[storable() ?? "DE"] = storable() }
        return device
    }

    /// PostgreSQL keeps no NUL.
    private mutating func storable() -> String? {
        let text = text()
        return text.contains("\u{0}") || text.isEmpty ? nil : text
    }

    package mutating func expression(depth: Int) -> AudienceExpression {
        switch Int.random(in: depth > 0 ? 0..<13 : 3..<13, using: &generator) {
        case 0: return .all(expressions(depth: depth - 1))
        case 1: return .any(expressions(depth: depth - 1))
        case 2: return .not(expression(depth: depth - 1))
        case 3: return .everyone
        case 4: return .segment(Bool.random(using: &generator) ? "fans" : "a\"b'c")
        case 5: return .tag(text())
        case 6: return .isNull(field())
        case 7: return .within(Bool.random(using: &generator) ? .lastSeenAt : .registeredAt, .seconds(number()))
        case 8:
            let field = field()
            return .between(field, value(field), value(field))
        case 9, 10:
            let field = field()
            let count = Int.random(in: 0...4, using: &generator)
            return .oneOf(field, (0..<count).map { _ in value(field) })
        default:
            let field = field()
            let comparison = ComparisonOperator.allCases.randomElement(using: &generator) ?? .equal
            return .comparison(field, comparison, value(field))
        }
    }

    private mutating func expressions(depth: Int) -> [AudienceExpression] {
        let count = Int.random(in: 0...4, using: &generator)
        return (0..<count).map { _ in expression(depth: depth) }
    }

    private mutating func field() -> AudienceField {
        Self.fields.randomElement(using: &generator) ?? .country
    }

    private mutating func text() -> String {
        Self.texts.randomElement(using: &generator) ?? ""
    }

    private mutating func number() -> Int64 {
        Int64.random(in: -100...10_000_000, using: &generator)
    }

    private mutating func value(_ field: AudienceField) -> AudienceValue {
        switch field.kind {
        case .text: return .text(text())
        case .boolean: return .boolean(Bool.random(using: &generator))
        case .number: return .number(Double(number()) / 3)
        case .time: return .time(noon - .seconds(number()))
        case .version:
            return AppVersion("4.\(UInt8.random(in: 0...12, using: &generator))").map { .version($0) } ?? .text("")
        case .locale:
            let tag = ["de", "de-AT", "pt", "zh-Hant-HK"].randomElement(using: &generator) ?? "de"
            return LocaleTag(tag).map { .locale($0) } ?? .text(tag)
        }
    }
}
