import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var audiences: [Promise] {
        Promise("every operator selects the devices it should") { store in
            try await populate(store)
            for row in Self.rows {
                let found = Collected<StoredDevice>()
                _ = try await store.exportDevices(topic: wendercast, matching: row.expression, now: noon) {
                    found.add($0)
                }
                #expect(found.all.map(\.id) == row.expected, "\(row.name)")
            }
        }
        Promise("reach counts those to be sent to, and the others by reason") { store in
            try await populate(store)
            let reach = try await store.reach(of: .everyone, topic: wendercast, pushType: .alert, now: noon)
            #expect(reach.total == 4)
            #expect(reach.suppressed == [.alertsNotAllowed: 1])
            #expect(reach.slices.contains(Reach.Slice(environment: .sandbox, locale: "den", count: 1)))
            #expect(reach.slices.contains(Reach.Slice(environment: .production, locale: nil, count: 1)))
            let silent = try await store.reach(of: .everyone, topic: wendercast, pushType: .background, now: noon)
            #expect(silent.total == 5 && silent.suppressed.isEmpty)
            let other = try await store.reach(of: .everyone, topic: "other", pushType: .alert, now: noon)
            #expect(other.total == 0)
        }
        Promise("samples show one device per locale with what a template prints") { store in
            try await populate(store)
            let samples = try await store.sampleDevices(
                of: .tag("beta"), topic: wendercast, now: noon,
                fields: [.model, .alertsAllowed, .attribute("plan"), .environment, .badge, .registeredAt], limit: 10)
            #expect(samples.map(\.device) == [1, 2])
            #expect(samples[0].fields == ["iPhone16,1", "true", "pro", "production", "0", "2026-10-07T08:00:00Z"])
            #expect(samples[1].fields == [nil, "false", "free", "production", "0", nil])
        }
        Promise.each(
            [
                (AudienceField.appVersion, AudienceValue.text("4.2")), (.country, .number(1)), (.badge, .boolean(true)),
                (.lastSeenAt, .text("x")), (.alertsAllowed, .number(1)), (.badge, .number(.infinity)),
            ], { "a value of another kind is refused: \($0)" }
        ) { store, row in
            let (field, value) = row
            await #expect(throws: StoreError.unsuitableValue(field: field.name, value: "\(value)")) {
                try await store.reach(
                    of: .not(.comparison(field, .equal, value)), topic: wendercast, pushType: .alert, now: noon)
            }
        }
        Promise("lists of thousands compile, nesting without end is refused") { store in
            try await populate(store)
            let countries = (0..<40_000).map { AudienceValue.text("c\($0)") } + [.text("de")]
            var reach = try await store.reach(
                of: .oneOf(.country, countries), topic: wendercast, pushType: .alert, now: noon)
            #expect(reach.total == 1)
            let parts = (0..<3_000).map { AudienceExpression.tag("t\($0)") } + [.tag("vip")]
            reach = try await store.reach(of: .any(parts), topic: wendercast, pushType: .alert, now: noon)
            #expect(reach.total == 1)
        }
        Promise("what would take minutes to prepare is refused, however it is written") { store in
            try await populate(store)
            let languages = (0..<8_000).map { locale("\(letters($0))-DE") }
            let comparisons = (0..<8_000).map { AudienceExpression.comparison(.country, .equal, .text("c\($0)")) }
            let missing = (0..<8_000).map { AudienceExpression.isNull(.attribute("a\($0)")) }
            for expression in [.oneOf(.locale, languages), .any(comparisons), .all(missing)] as [AudienceExpression] {
                await #expect(throws: StoreError.audienceTooLarge) {
                    try await store.reach(of: expression, topic: wendercast, pushType: .alert, now: noon)
                }
            }
            let many = AudienceExpression.oneOf(.locale, Array(languages.prefix(600)))
            #expect(try await store.reach(of: many, topic: wendercast, pushType: .alert, now: noon).total == 0)
        }
        Promise("nesting compiles up to a limit of its own and is refused beyond") { store in
            try await populate(store)
            let deepest = try await store.reach(of: nested(20), topic: wendercast, pushType: .background, now: noon)
            #expect(deepest.total == 5)
            let languages = AudienceExpression.oneOf(.locale, [locale("zh-Hant")])
            let deepestOfLanguages = try await store.reach(
                of: nested(20, leaf: languages), topic: wendercast, pushType: .background, now: noon)
            #expect(deepestOfLanguages.total == 5)
            var negated = AudienceExpression.oneOf(.attribute("\"odd\""), [.text("x")])
            for _ in 0..<60 { negated = .not(negated) }
            #expect(try await store.reach(of: negated, topic: wendercast, pushType: .alert, now: noon).total == 0)
            for tooDeep in [nested(21), .not(negated)] {
                await #expect(throws: StoreError.audienceTooLarge) {
                    try await store.reach(of: tooDeep, topic: wendercast, pushType: .alert, now: noon)
                }
            }
        }
    }

    /// A language of three letters.
    private static func letters(_ number: Int) -> String {
        let letters = (0..<3).map { place in
            UInt8(ascii: "a") + UInt8(number / [1, 26, 676][place] % 26)
        }
        return String(decoding: letters, as: UTF8.self)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var expression: AudienceExpression
        var expected: [Int64]
        var testDescription: String { name }

        init(_ name: String, _ expression: AudienceExpression, _ expected: [Int64]) {
            self.name = name
            self.expression = expression
            self.expected = expected
        }
    }

    /// Device 5 has nothing but its token.
    static let population: [(Int, @Sendable (inout DeviceRecord) -> Void)] = [
        (
            1,
            { device in
                device.userID = "ray"
                device.locale = "de"
                device.timeZone = "Europe/Berlin"
                device.country = "DE"
                device.appVersion = "4.9"
                device.osVersion = "18.0"
                device.model = "iPhone16,1"
                device.alertsAllowed = true
                device.registeredAt = noon - .seconds(100 * 86_400)
                device.lastSeenAt = noon - .seconds(90 * 86_400)
                device.tags = ["beta", "vip"]
                device.attributes = ["plan": "pro", "it's \"odd\"": "yes", "a.b": "1"]
            }
        ),
        (
            2,
            { device in
                device.locale = "de-AT"
                device.country = "at"
                device.appVersion = "4.10"
                device.alertsAllowed = false
                device.lastSeenAt = noon - .seconds(90 * 86_400) - .milliseconds(1)
                device.tags = ["beta"]
                device.attributes = ["plan": "free"]
            }
        ),
        (
            3,
            { device in
                device.locale = "pt-BR"
                device.appVersion = "4.2.0"
                device.osVersion = "17.6.1"
                device.country = "BR"
            }
        ),
        (
            4,
            { device in
                device.locale = "den"
                device.appVersion = "4.2-beta"
                device.osVersion = "9.3.6"
                device.environment = .sandbox
                device.country = "US"
            }
        ),
        (5, { $0.installationID = nil }),
    ]

    private static func version(_ text: String) -> AudienceValue {
        AppVersion(text).map(AudienceValue.version) ?? .text("not a version")
    }

    private static func locale(_ text: String) -> AudienceValue {
        LocaleTag(text).map(AudienceValue.locale) ?? .text("not a tag")
    }

    private static let rows: [Row] = [
        Row("everyone", .everyone, [1, 2, 3, 4, 5]),
        Row("all of nothing is nobody", .all([]), []),
        Row("any of nothing", .any([]), []),
        Row("and", .all([.tag("beta"), .comparison(.country, .equal, .text("DE"))]), [1]),
        Row("or", .any([.tag("vip"), .comparison(.country, .equal, .text("BR"))]), [1, 3]),
        Row("equal ignores case for countries", .comparison(.country, .equal, .text("AT")), [2]),
        Row("equal minds case elsewhere", .comparison(.userID, .equal, .text("RAY")), []),
        Row("not equal is false without the field", .comparison(.country, .notEqual, .text("DE")), [2, 3, 4]),
        Row(
            "not of a comparison is true without the field", .not(.comparison(.country, .equal, .text("DE"))),
            [2, 3, 4, 5]),
        Row("not not", .not(.not(.comparison(.country, .equal, .text("DE")))), [1]),
        Row("environment", .comparison(.environment, .equal, .text("sandbox")), [4]),
        Row("installation", .comparison(.installationID, .equal, .text("install-3")), [3]),
        Row("time zone", .comparison(.timeZone, .equal, .text("Europe/Berlin")), [1]),
        Row("model", .comparison(.model, .equal, .text("iPhone16,1")), [1]),
        Row("versions compare by number", .comparison(.appVersion, .greaterOrEqual, version("4.9")), [1, 2]),
        Row("versions less", .comparison(.appVersion, .less, version("4.9")), [3, 4]),
        Row("versions equal with zeros", .comparison(.appVersion, .equal, version("4.2")), [3, 4]),
        Row("versions greater", .comparison(.appVersion, .greater, version("4.9")), [2]),
        Row("versions less or equal", .comparison(.osVersion, .lessOrEqual, version("18")), [1, 3, 4]),
        Row("OS versions compare by number", .comparison(.osVersion, .greaterOrEqual, version("17")), [1, 3]),
        Row("OS versions are equal with zeros", .comparison(.osVersion, .equal, version("18")), [1]),
        Row("versions in", .oneOf(.appVersion, [version("4.2"), version("4.10")]), [2, 3, 4]),
        Row("versions between", .between(.appVersion, version("4.3"), version("4.9.9")), [1]),
        Row("language ranges", .oneOf(.locale, [locale("de")]), [1, 2]),
        Row("narrow language range", .oneOf(.locale, [locale("de-AT"), locale("pt")]), [2, 3]),
        Row("a language range that only its default script has", .oneOf(.locale, [locale("de-Latn")]), [1, 2]),
        Row("language range has subtags whole", .oneOf(.locale, [locale("d"), locale("de-A")]), []),
        Row("locale equals exactly", .comparison(.locale, .equal, locale("de")), [1]),
        Row("no language", .not(.oneOf(.locale, [locale("de")])), [3, 4, 5]),
        Row("in", .oneOf(.country, [.text("de"), .text("BR"), .text("x\"'")]), [1, 3]),
        Row("in nothing", .oneOf(.country, []), []),
        Row("not in", .not(.oneOf(.country, [.text("DE")])), [2, 3, 4, 5]),
        Row("boolean true", .comparison(.alertsAllowed, .equal, .boolean(true)), [1]),
        Row("boolean false", .comparison(.alertsAllowed, .equal, .boolean(false)), [2]),
        Row("boolean in", .oneOf(.alertsAllowed, [.boolean(true), .boolean(false)]), [1, 2]),
        Row("is null", .isNull(.country), [5]),
        Row("installation is null", .isNull(.installationID), [5]),
        Row("is not null", .not(.isNull(.lastSeenAt)), [1, 2]),
        Row("attribute is null", .isNull(.attribute("plan")), [3, 4, 5]),
        Row("within, to the millisecond", .within(.lastSeenAt, .seconds(90 * 86_400)), [1]),
        Row("not within", .not(.within(.lastSeenAt, .seconds(90 * 86_400))), [2, 3, 4, 5]),
        Row("time before", .comparison(.registeredAt, .less, .time(noon)), [1]),
        Row("time between", .between(.lastSeenAt, .time(noon - .seconds(91 * 86_400)), .time(noon)), [1, 2]),
        Row("time in", .oneOf(.lastSeenAt, [.time(noon - .seconds(90 * 86_400))]), [1]),
        Row("number", .comparison(.badge, .lessOrEqual, .number(0)), [1, 2, 3, 4, 5]),
        Row("number between", .between(.badge, .number(0.5), .number(2)), []),
        Row("number in", .oneOf(.badge, [.number(0), .number(7)]), [1, 2, 3, 4, 5]),
        Row("attribute", .comparison(.attribute("plan"), .equal, .text("pro")), [1]),
        Row("attribute with a dot", .comparison(.attribute("a.b"), .equal, .text("1")), [1]),
        Row("attribute with quotes", .comparison(.attribute("it's \"odd\""), .equal, .text("yes")), [1]),
        Row("attribute not equal", .comparison(.attribute("plan"), .notEqual, .text("pro")), [2]),
        Row("attribute in", .oneOf(.attribute("plan"), [.text("pro"), .text("free")]), [1, 2]),
        Row("attribute nobody has", .comparison(.attribute("x') OR 1"), .equal, .text("1")), []),
        Row("tag", .tag("beta"), [1, 2]),
        Row("not tag", .not(.tag("beta")), [3, 4, 5]),
        Row("tag nobody has", .tag("' OR 1 = 1 --"), []),
        Row("segment", .segment("fans"), [1, 3]),
        Row("not segment", .not(.segment("fans")), [2, 4, 5]),
        Row("segment and language", .all([.segment("fans"), .oneOf(.locale, [locale("pt")])]), [3]),
        Row("text between", .between(.country, .text("AS"), .text("DE")), [1, 2, 3]),
        Row("text less", .comparison(.country, .less, .text("BR")), [2]),
    ]

    private static func populate(_ store: any AllRoles) async throws {
        let records = try Self.population.map { number, change in try record(number, change) }
        _ = try await store.importDevices(records, now: noon)
        let fans = try await store.importSegment("fans", mode: .replace)
        try await fans.append([.installation("install-1"), .installation("install-3")])
        _ = try await fans.commit(now: noon)
    }

    /// The worst of each level: a full chain whose last part is the next level, the costliest leaf in the middle.
    private static func nested(
        _ levels: Int, leaf: AudienceExpression = .between(.attribute("\"odd\""), .text("a"), .text("b"))
    ) -> AudienceExpression {
        var expression = AudienceExpression.oneOf(.attribute("\"odd\""), [.text("x")])
        for level in 0..<levels {
            let parts = [AudienceExpression](repeating: level == 0 ? leaf : .everyone, count: 29)
            expression =
                level % 2 == 0 ? .any([.tag("vip")] + parts.dropFirst() + [expression]) : .all(parts + [expression])
        }
        return expression
    }
}
