import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var removing: [Promise] {
        Promise("a removed device is gone with its tags and memberships, and who removed it is on record") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) { $0.tags = ["beta"] } }, now: noon)
            try await join(store, 1...3)
            #expect(try await store.removeDevice(2, now: noon, by: "amy") == .deleted)
            #expect(try await store.device(2) == nil)
            #expect(try await store.segments().map(\.count) == [2])
            #expect(try await store.removeDevice(2, now: noon, by: "amy") == nil)
            let events = try await store.events(EventFilter(kind: "device_removed"), before: nil, limit: 9).events
            #expect(events.map(\.actor.name) == ["amy"])
            #expect(events.map(\.detail) == ["device 2 of \(wendercast), installation install-2"])
            // Registered again it is another device.
            _ = try await store.importDevices([try record(2)], now: noon)
            #expect(try await store.devices(matching: "install-2").map(\.id) == [4])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("a device removed and registered again has the silent budget it had") { store in
            _ = try await store.importDevices(
                [try record(1) { ($0.userID, $0.tags, $0.attributes) = ("ray", ["beta"], ["plan": "gold"]) }], now: noon
            )
            try await join(store, 1...1)
            let budget = Configuration.SilentBudget(limit: 1, window: .seconds(1200))
            let run = try await store.startRun(try definition("first", pushType: .background))
            let sent = try await lease(store, run, budget, now: noon)
            _ = try await store.settle(run: run, sent.settlements(.accepted), now: noon)
            #expect(try await store.removeDevice(1, now: noon + .seconds(1), by: "amy") == .emptied)
            let gone = try #require(try await store.device(1))
            #expect(gone.status == .gone && gone.record.userID == nil && gone.record.tags == [])
            #expect(gone.record.attributes == nil)
            #expect(try await store.segments().map(\.count) == [0])
            #expect(try await store.verify(budgets: [:]).isSound)
            let back = try record(1) { $0.registeredAt = noon + .seconds(2) }
            _ = try await store.importDevices([back], now: noon + .seconds(2))
            #expect(try await store.device(1)?.status == .active)
            let second = try await store.startRun(
                try definition("second", pushType: .background), now: noon + .seconds(3))
            let refused = try await lease(store, second, budget, now: noon + .seconds(3))
            #expect(refused.deliveries.isEmpty)
            // The longest window has not passed.
            let lastDay = noon + Configuration.SilentBudget.windowMax
            #expect(try await store.removeDevice(1, now: lastDay - .seconds(1), by: "amy") == .emptied)
            // Once the ledger has forgotten, so does the registry.
            #expect(try await store.removeDevice(1, now: lastDay, by: "amy") == .deleted)
            #expect(try await store.device(1) == nil)
        }
        Promise("the row that a removed device keeps has no personal data, and goes once its pushes count no more") {
            store in
            let first = try record(1, installation: "one") {
                ($0.userID, $0.locale, $0.timeZone, $0.country) = ("ray", "de", "Europe/Berlin", "DE")
                ($0.appVersion, $0.osVersion, $0.model, $0.alertsAllowed) = ("1.2", "19.1", "iPhone17,1", false)
                ($0.attributes, $0.tags, $0.lastSeenAt, $0.registeredAt) = (["plan": "gold"], ["beta"], noon, noon)
            }
            _ = try await store.importDevices([first, try record(3)], now: noon)
            // A second token, so that there is an old one.
            var second = try record(2, installation: "one")
            second.registeredAt = noon + .seconds(1)
            _ = try await store.importDevices([second], now: noon + .seconds(1))
            #expect(try await store.history(ofDevice: 1)?.oldTokens.count == 1)
            let run = try await store.startRun(
                try definition("first", pushType: .background), now: noon + .seconds(2))
            let sent = try await lease(store, run, Configuration.SilentBudget(), now: noon + .seconds(2))
            _ = try await store.settle(run: run, sent.settlements(.accepted), now: noon + .seconds(2))
            #expect(try await store.removeDevice(1, now: noon + .seconds(3), by: "amy") == .emptied)
            var left = second
            (left.locale, left.tags, left.attributes, left.badge) = (nil, [], nil, 0)
            let row = try #require(try await store.device(1))
            #expect(row.record == left && row.status == .gone, "\(row.record)")
            #expect(try await store.history(ofDevice: 1)?.oldTokens.isEmpty == true)
            let ended = noon + .seconds(2) + Configuration.SilentBudget.windowMax
            let early = try await store.pruneRemovedDevices(now: ended - .seconds(1), by: "daemon")
            #expect(early.kept == 1 && early.total == 0)
            #expect(try await store.device(1) != nil)
            #expect(try await store.pruneRemovedDevices(now: ended, by: "daemon").gone == 1)
            #expect(try await store.device(1) == nil)
            let events = try await store.events(EventFilter(kind: "devices_pruned"), before: nil, limit: 9).events
            #expect(events.map(\.detail) == ["gone 1, not seen 0"] && events.map(\.actor.name) == ["daemon"])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("only rows of devices that a person removed are deleted by themselves") { store in
            _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 1)
            var gone = lease.settlements(.rejected, status: 410, reason: "Unregistered")
            gone[0].effect = .gone(since: noon)
            _ = try await store.settleAndMark(run: run, gone, now: noon)
            #expect(try await store.device(1)?.status == .gone)
            let later = noon + .seconds(90 * 86_400)
            #expect(try await store.pruneRemovedDevices(now: later, by: "daemon") == PruneCounts())
            #expect(try await store.device(1) != nil)
        }
        Promise("a budget of a week outlasts a removal on the next day") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let budget = Configuration.SilentBudget(limit: 1, window: Configuration.SilentBudget.windowMax)
            let run = try await store.startRun(try definition("first", pushType: .background))
            let sent = try await lease(store, run, budget, now: noon)
            _ = try await store.settle(run: run, sent.settlements(.accepted), now: noon)
            let next = noon + .seconds(25 * 3600)
            #expect(try await store.removeDevice(1, now: next, by: "amy") == .emptied)
            let back = next + .seconds(2)
            _ = try await store.importDevices([try record(1) { $0.registeredAt = back }], now: back)
            let second = try await store.startRun(try definition("second", pushType: .background), now: back)
            #expect(try await lease(store, second, budget, now: back).deliveries.isEmpty)
        }
        Promise("what waits for a removed device is suppressed when its turn comes") { store in
            _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            #expect(try await store.removeDevice(1, now: noon, by: "amy") == .deleted)
            let lease = try await store.lease(run)
            #expect(lease.deliveries.map(\.device) == [2] && lease.suppressions == [.tokenGone: 1])
            try await store.expectSumsClose(run)
        }
        Promise("an answer for a device removed meanwhile leaves nothing of it behind") { store in
            _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            #expect(try await store.removeDevice(1, now: noon, by: "amy") == .deleted)
            let counts = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(counts.accepted == 2)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("the members of a segment are paged through, static or dynamic") { store in
            let records = try (1...9).map { number in try record(number) { $0.locale = number % 2 == 0 ? "de" : "en" } }
            _ = try await store.importDevices(records, now: noon)
            try await join(store, 3...8)
            let expression = AudienceExpression.not(.segment("fans"))
            try await store.defineSegment("others", source: "not segment fans", expression: expression, now: noon)
            for (name, expected) in [("fans", Array(Int64(3)...8)), ("others", [1, 2, 9])] {
                for limit in [1, 2, 3, 100] {
                    var found: [Int64] = []
                    var cursor: Int64? = 0
                    while let after = cursor {
                        let page = try await store.members(ofSegment: name, after: after, limit: limit, now: noon)
                        #expect(page.devices.count <= limit)
                        found += page.devices.map(\.id)
                        cursor = page.next
                    }
                    #expect(found == expected, "\(name) \(limit)")
                }
            }
            await #expect(throws: StoreError.noSuchSegment("fanz", suggestion: "fans")) {
                try await store.members(ofSegment: "fanz", after: 0, limit: 9, now: noon)
            }
        }
    }

    private static func join(_ store: any AllRoles, _ numbers: ClosedRange<Int>) async throws {
        let fans = try await store.importSegment("fans", mode: .replace)
        try await fans.append(numbers.map { .installation("install-\($0)") })
        _ = try await fans.commit(now: noon)
    }

    private static func lease(
        _ store: any AllRoles, _ run: Int64, _ budget: Configuration.SilentBudget, now: Timestamp
    ) async throws -> Lease {
        var request = LeaseRequest(run: run, environment: .production, limit: 10, now: now, owner: "a")
        request.silentBudget = budget
        return try await store.lease(request)
    }
}
