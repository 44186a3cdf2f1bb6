import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var dynamicSegments: [Promise] {
        Promise("a dynamic segment is whoever its expression selects when it is asked") { store in
            try await populate(store)
            try await define(store, "germans", .comparison(.country, .equal, .text("DE")))
            try await define(store, "recent", .within(.lastSeenAt, .seconds(2 * 86_400)))
            try await define(store, "german-betas", .all([.segment("germans"), .tag("beta")]))
            try await define(store, "mixed", .any([.segment("german-betas"), .segment("fans")]))
            let rows: [(AudienceExpression, [Int64])] = [
                (.segment("germans"), [1, 2, 3]), (.not(.segment("germans")), [4, 5, 6]),
                (.segment("german-betas"), [2]), (.segment("mixed"), [1, 2, 6]),
                (.all([.segment("mixed"), .not(.segment("fans"))]), [2]), (.segment("recent"), [1, 2]),
            ]
            for (expression, expected) in rows {
                #expect(try await members(store, expression) == expected, "\(expression)")
            }
            #expect(try await members(store, .segment("recent"), now: noon + .seconds(86_400)) == [1])
            let run = try await store.startRun(try definition(audience: .segment("mixed")))
            #expect(try await store.lease(run).deliveries.map(\.device) == [1, 2, 6])
            // Defined anew, all who use it follow.
            try await define(store, "germans", .comparison(.country, .equal, .text("BR")))
            #expect(try await members(store, .segment("mixed")) == [1, 4, 6])
        }
        Promise("details show the kind, the count of now and a sample") { store in
            try await populate(store)
            try await define(store, "recent", .within(.lastSeenAt, .seconds(3 * 86_400)))
            let tomorrow = noon + .seconds(86_400)
            let recent = try await store.segment("recent", now: tomorrow, sampleMax: 1)
            #expect(recent.kind == .dynamic(source: "as written") && recent.summary.count == 2)
            #expect(recent.sample.map(\.id) == [1])
            let fans = try await store.segment("fans", now: noon)
            #expect(fans.kind == .static && fans.summary.count == 2 && fans.sample.map(\.id) == [1, 6])
            #expect(try await store.segments().map(\.count) == [2, 3])
            #expect(try await store.segments(now: tomorrow).map(\.count) == [2, 2])
            await #expect(throws: StoreError.noSuchSegment("recint", suggestion: "recent")) {
                try await store.segment("recint", now: noon)
            }
        }
        Promise("a segment that would contain itself is refused with its way, and nothing is changed") { store in
            try await populate(store)
            await #expect(throws: StoreError.segmentCycle(["a", "a"])) {
                try await define(store, "a", .not(.segment("a")))
            }
            try await define(store, "a", .tag("beta"))
            try await define(store, "b", .any([.segment("fans"), .segment("a")]))
            try await define(store, "c", .not(.segment("b")))
            let error = StoreError.segmentCycle(["a", "c", "b", "a"])
            await #expect(throws: error) { try await define(store, "a", .all([.tag("x"), .segment("c")])) }
            #expect("\(error)".contains("a -> c -> b -> a"))
            #expect(try await members(store, .segment("a")) == [2, 4, 6])
            await #expect(throws: StoreError.noSuchSegment("fan", suggestion: "fans")) {
                try await define(store, "d", .segment("fan"))
            }
            #expect(try await store.segments().map(\.name) == ["a", "b", "c", "fans"])
        }
        Promise("nesting and doubling have limits") { store in
            try await populate(store)
            try await define(store, "n1", .tag("beta"))
            for level in 2...10 { try await define(store, "n\(level)", .segment("n\(level - 1)")) }
            await #expect(throws: StoreError.segmentsTooDeep((1...11).reversed().map { "n\($0)" })) {
                try await define(store, "n11", .segment("n10"))
            }
            try await define(store, "m1", .tag("beta"))
            await #expect(throws: StoreError.audienceTooLarge) {
                for level in 2...10 {
                    let part = AudienceExpression.segment("m\(level - 1)")
                    try await define(store, "m\(level)", .any([AudienceExpression](repeating: part, count: 8)))
                }
            }
        }
        Promise("a name is either imported or defined") { store in
            try await populate(store)
            try await define(store, "betas", .tag("beta"))
            await #expect(throws: StoreError.segmentIsStatic("fans")) { try await define(store, "fans", .everyone) }
            for mode in SegmentImportMode.allCases {
                await #expect(throws: StoreError.segmentIsDynamic("betas")) {
                    try await store.importSegment("betas", mode: mode)
                }
            }
            // Defined while an import of that name was going on.
            let late = try await store.importSegment("late", mode: .replace)
            try await late.append([.installation("install-1")])
            try await define(store, "late", .tag("beta"))
            await #expect(throws: StoreError.segmentIsDynamic("late")) { try await late.commit(now: noon) }
            #expect(try await members(store, .segment("late")) == [2, 4, 6])
        }
    }

    private static func populate(_ store: any AllRoles) async throws {
        let records = try (1...6).map { number in
            try record(number) {
                $0.country = number <= 3 ? "DE" : "BR"
                $0.tags = number % 2 == 0 ? ["beta"] : []
                $0.lastSeenAt = noon - .seconds(Int64(number) * 86_400)
            }
        }
        _ = try await store.importDevices(records + [try record(7, topic: "other") { $0.country = "DE" }], now: noon)
        let fans = try await store.importSegment("fans", mode: .replace)
        try await fans.append([.installation("install-1"), .installation("install-6")])
        _ = try await fans.commit(now: noon)
    }

    private static func define(_ store: any AllRoles, _ name: String, _ expression: AudienceExpression) async throws {
        try await store.defineSegment(name, source: "as written", expression: expression, now: noon)
    }

    private static func members(
        _ store: any AllRoles, _ expression: AudienceExpression, now: Timestamp = noon
    ) async throws -> [Int64] {
        let found = Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: wendercast, matching: expression, now: now) { found.add($0) }
        return found.all.map(\.id)
    }
}
