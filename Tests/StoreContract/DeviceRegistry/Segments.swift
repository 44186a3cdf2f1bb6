import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var segments: [Promise] {
        Promise("members are replaced, added and removed, by installation, user and token") { store in
            try await devices(store)
            var counts = try await change(store, .replace, [.installation("install-1"), .user("ann"), .user("nobody")])
            #expect(counts.read == 3 && counts.added == 4 && counts.unmatched == 1 && counts.alreadyIn == 0)
            #expect(try await members(store) == [1, 3, 4, 5])

            counts = try await change(store, .add, [.token(try token(2)), .installation("install-1")])
            #expect(counts.added == 1 && counts.alreadyIn == 1 && counts.removed == 0)
            #expect(try await members(store) == [1, 2, 3, 4, 5])

            counts = try await change(store, .remove, [.user("ray"), .user("ray")])
            #expect(counts.removed == 2 && counts.alreadyIn == 3 && counts.unmatched == 0)
            #expect(try await members(store) == [3, 4, 5])

            counts = try await change(store, .replace, [.installation("install-3"), .installation("install-2")])
            #expect(counts.added == 1 && counts.alreadyIn == 1 && counts.removed == 2)
            #expect(try await members(store) == [2, 3])
            let summary = try #require(try await store.segments().first)
            #expect(summary.name == "fans" && summary.count == 2 && summary.updatedAt == noon)
        }
        Promise("of two names that look the same neither is signed for the other") { store in
            try await devices(store)
            for name in ["cafe\u{301}", "caf\u{e9}"] {
                let work = try await store.importSegment(name, mode: .replace)
                try await work.append([.user("ray")])
                _ = try await work.commit(now: noon)
            }
            for name in ["cafe\u{301}", "caf\u{e9}"] {
                let campaign = try definition(audience: .segment(name)).campaign
                await #expect(throws: StoreError.segmentIsAmbiguous(name)) {
                    try await store.segmentContents(of: campaign)
                }
            }
            #expect(try await store.segmentContents(of: try definition().campaign) == SegmentContents())
        }
        Promise("an import that is not committed changes nothing") { store in
            try await devices(store)
            _ = try await change(store, .replace, [.user("ray")])
            do {
                let work = try await store.importSegment("fans", mode: .replace)
                try await work.append([.user("ann")])
            }
            #expect(try await members(store) == [1, 2])
            // Nor does it show in the next one.
            _ = try await change(store, .replace, [.installation("install-1")])
            #expect(try await members(store) == [1])
        }
        Promise("a topic keeps other topics' devices out") { store in
            try await devices(store)
            _ = try await store.importDevices([try record(9, topic: "other") { $0.userID = "ray" }], now: noon)
            let counts = try await change(store, .replace, [.user("ray")], topic: wendercast)
            #expect(counts.added == 2)
        }
        Promise("a segment that nothing uses is removed with its members, and who removed it is on record") { store in
            try await devices(store)
            _ = try await change(store, .replace, [.user("ray")])
            try await store.defineSegment("all", source: "everyone", expression: .everyone, now: noon)
            try await store.removeSegment("fans", usedBy: [], now: noon, by: "amy")
            try await store.removeSegment("all", usedBy: [], now: noon, by: "amy")
            #expect(try await store.segments().isEmpty)
            let events = try await store.events(EventFilter(kind: "segment_removed"), before: nil, limit: 9).events
            #expect(Set(events.map(\.detail)) == ["fans", "all"] && events.allSatisfy { $0.actor.name == "amy" })
            #expect(try await store.deviceCounts().map(\.count) == [5])
            await #expect(throws: StoreError.noSuchSegment("fans", suggestion: nil)) {
                try await store.removeSegment("fans", usedBy: [], now: noon, by: "amy")
            }
            // Made anew it holds nobody of before.
            _ = try await change(store, .add, [.installation("install-5")])
            #expect(try await members(store) == [5])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("a segment that something needs is not removed, and all that needs it is named") { store in
            try await devices(store)
            _ = try await change(store, .replace, [.user("ray")])
            try await store.defineSegment(
                "most", source: "-", expression: .not(.segment("fans")), now: noon)
            let waiting = try await store.createRun(
                try definition("waits", audience: .segment("fans")), occurrence: "1", now: noon, by: "test"
            ).run.id
            let frozen = try await store.startRun(try definition("frozen", audience: .segment("fans")))
            #expect(frozen != waiting)
            let query = try await store.createRun(
                try definition("query") {
                    $0.audienceSQL = "SELECT device_id FROM segment_view WHERE segment = 'fans'"
                },
                occurrence: "1", now: noon, by: "test"
            ).run.id
            let users = [
                "campaign spring", "segment \"most\"",
                "run \(waiting) of waits, which has not yet selected its devices",
                "run \(query) of query, which has not yet selected its devices",
            ]
            await #expect(throws: StoreError.segmentIsUsed("fans", by: users)) {
                try await store.removeSegment("fans", usedBy: ["campaign spring"], now: noon, by: "amy")
            }
            let known = try await store.segmentUsers(of: ["fans", "most", "none"])
            #expect(known == ["fans": Array(users.dropFirst()), "most": [], "none": []])
            #expect(try await members(store) == [1, 2])
            #expect(try await store.events(EventFilter(kind: "segment_removed"), before: nil, limit: 9).events.isEmpty)
        }
        Promise("a definition or a change of members is on record with it, and a refused one is not") { store in
            try await devices(store)
            let work = try await store.importSegment("fans", mode: .replace)
            try await work.append([.user("ray")])
            _ = try await work.commit(now: noon) { SegmentEvent(by: "amy", "fans: \($0.added) added") }
            let event = SegmentEvent(by: "ben", "all: everyone")
            try await store.defineSegment("all", source: "-", expression: .everyone, now: noon, event: event)
            await #expect(throws: StoreError.segmentIsStatic("fans")) {
                try await store.defineSegment("fans", source: "-", expression: .everyone, now: noon, event: event)
            }
            let late = try await store.importSegment("late", mode: .replace)
            try await store.defineSegment("late", source: "-", expression: .everyone, now: noon)
            await #expect(throws: StoreError.segmentIsDynamic("late")) {
                try await late.commit(now: noon) { _ in event }
            }
            for (kind, detail, name) in [
                ("segment_changed", "fans: 2 added", "amy"), ("segment_defined", "all: everyone", "ben"),
            ] {
                let events = try await store.events(EventFilter(kind: kind), before: nil, limit: 9).events
                #expect(events.map(\.detail) == [detail] && events.map(\.actor.name) == [name])
            }
        }
        Promise("an unknown segment is refused with the nearest name") { store in
            try await devices(store)
            _ = try await change(store, .replace, [.user("ray")])
            let expected = StoreError.noSuchSegment("fanz", suggestion: "fans")
            await #expect(throws: expected) {
                try await store.reach(of: .not(.segment("fanz")), topic: wendercast, pushType: .alert, now: noon)
            }
            await #expect(throws: expected) { try await store.importSegment("fanz", mode: .remove) }
            await #expect(throws: StoreError.noSuchSegment("zzz", suggestion: nil)) {
                try await store.reach(of: .segment("zzz"), topic: wendercast, pushType: .alert, now: noon)
            }
        }
    }

    private static func devices(_ store: any AllRoles) async throws {
        let records = try (1...5).map { number in try record(number) { $0.userID = number < 3 ? "ray" : "ann" } }
        _ = try await store.importDevices(records, now: noon)
    }

    private static func members(_ store: any AllRoles, _ name: String = "fans") async throws -> [Int64] {
        let found = Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: nil, matching: .segment(name), now: noon) { found.add($0) }
        return found.all.map(\.id)
    }

    private static func change(
        _ store: any AllRoles, _ mode: SegmentImportMode, _ keys: [SegmentMemberKey], topic: String? = nil
    ) async throws -> SegmentImportCounts {
        let work = try await store.importSegment("fans", mode: mode, topic: topic)
        for key in keys { try await work.append([key]) }
        return try await work.commit(now: noon)
    }
}
