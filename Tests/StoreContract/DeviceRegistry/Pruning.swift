import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var pruning: [Promise] {
        Promise.each(
            [
                (399, nil, nil, [1], [], [2, 3, 4, 5, 6, 7]), (9, nil, nil, [1, 2], [], [3, 4, 5, 6, 7]),
                (nil, 300, nil, [], [1, 4, 7], [2, 3, 5, 6]), (nil, 300, wendercast, [], [1, 4], [2, 3, 5, 6, 7]),
                (399, 300, nil, [1], [4, 7], [2, 3, 5, 6]), (nil, nil, nil, [], [], [1, 2, 3, 4, 5, 6, 7]),
                (500, 500, nil, [], [], [1, 2, 3, 4, 5, 6, 7]),
            ] as [(Int64?, Int64?, String?, [Int64], [Int64], [Int64])],
            { "those gone and those not seen are counted, then deleted: \($0)" }
        ) { store, row in
            let (goneDays, unseenDays, topic, gone, unseen, left) = row
            try await populate(store)
            for dryRun in [true, false] {
                let counts = try await store.pruneDevices(
                    goneBefore: goneDays.map { noon - .seconds($0 * Self.day) },
                    notSeenSince: unseenDays.map { noon - .seconds($0 * Self.day) }, topic: topic, dryRun: dryRun,
                    now: noon)
                #expect(counts.gone == gone.count && counts.notSeen == unseen.count && counts.kept == 0)
                let found = Collected<StoredDevice>()
                _ = try await store.exportDevices(topic: nil, matching: .everyone, now: noon) { found.add($0) }
                #expect(found.all.map(\.id) == (dryRun ? Array(1...7) : left))
            }
            #expect(try await store.segments().map(\.count) == [left.count])
            #expect(try await store.segment("fans", now: noon, sampleMax: 9).sample.map(\.id) == left)
        }
        Promise("deliveries and reports outlive their device") { store in
            try await populate(store)
            let run = try #require(try await store.latestRun(campaign: "new-podcast")?.id)
            let before = try await store.report(run)
            _ = try await store.pruneDevices(
                goneBefore: noon, notSeenSince: noon - .seconds(Self.day), dryRun: false, now: noon)
            #expect(try await store.report(run) == before)
            try await store.expectSumsClose(run)
            #expect(try await store.integrity() == [])
            // The pruned device had been waiting.
            let lease = try await store.lease(run)
            #expect(lease.suppressed == 1 && lease.deliveries.map(\.device) == [3, 5, 6])
            try await store.expectSumsClose(run)
            let outcomes = Collected<OutcomeRow>()
            #expect(try await store.outcomes(run: run) { outcomes.add($0) } == 6)
            #expect(outcomes.all.first?.installationID == nil && outcomes.all.first?.reason == "Unregistered")
        }
        Promise("a device whose silent pushes still count is left for the next time") { store in
            _ = try await store.importDevices([try record(1) { $0.lastSeenAt = noon - .seconds(9_000_000) }], now: noon)
            let run = try await store.startRun(try definition(pushType: .background))
            var request = LeaseRequest(run: run, environment: .production, limit: 10, now: noon, owner: "a")
            request.silentBudget = Configuration.SilentBudget()
            let lease = try await store.lease(request)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            for (later, kept) in [(0, 1), (7 * Self.day - 1, 1), (7 * Self.day, 0)] {
                let now = noon + .seconds(later)
                let counts = try await store.pruneDevices(notSeenSince: noon, dryRun: true, now: now)
                #expect(counts.kept == kept && counts.notSeen == 1 - kept)
            }
        }
        Promise("a device under a frequency cap is left until none of its pushes counts, and gets no fresh slots") {
            store in
            let old = try record(1) { $0.lastSeenAt = noon - .seconds(400 * Self.day) }
            _ = try await store.importDevices([old, try record(2) { $0.lastSeenAt = old.lastSeenAt }], now: noon)
            let caps = [FrequencyCap(limit: 1, window: FrequencyCap.windowMax)]
            let run = try await store.startRun(try definition())
            let lease = try await store.capped(run, caps, limit: 1)
            #expect(lease.deliveries.map(\.device) == [1])
            func prune(_ later: Duration, dryRun: Bool = false) async throws -> PruneCounts {
                try await store.pruneDevices(notSeenSince: noon, dryRun: dryRun, now: noon + later)
            }
            let inFlight = try await prune(.zero, dryRun: true)
            #expect(inFlight.kept == 1 && inFlight.notSeen == 1)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(5))
            let pruned = try await prune(.seconds(Self.day))
            #expect(pruned.kept == 1 && pruned.notSeen == 1)
            _ = try await store.importDevices([old], now: noon + .seconds(Self.day))
            let next = try await store.startRun(try definition("next"))
            let held = try await store.capped(
                next, caps, now: noon + .seconds(Self.day), latest: .seconds(90 * Self.day))
            #expect(held.deliveries.isEmpty && held.nextDue == noon + .seconds(5) + FrequencyCap.windowMax)
            #expect(try await prune(.seconds(4) + FrequencyCap.windowMax, dryRun: true).kept == 1)
            #expect(try await prune(.seconds(5) + FrequencyCap.windowMax).notSeen == 1)
        }
        Promise("thousands go in batches, and everybody else stays") { store in
            let records = try (0..<9_000).map { number in
                try record(number) { $0.lastSeenAt = number % 3 == 0 ? noon : noon - .seconds(Self.day) }
            }
            _ = try await store.importDevices(records, now: noon)
            let counts = try await store.pruneDevices(notSeenSince: noon, dryRun: false, now: noon, by: "ray")
            #expect(counts.notSeen == 6_000)
            #expect(try await store.deviceCounts().map(\.count) == [3_000])
        }
    }

    private static let day: Int64 = 86_400

    /// 1 and 2 gone (one long ago), 3 never heard of, 4 seen long ago, 5 seen long ago and registered lately, 6 lately.
    private static func populate(_ store: any AllRoles) async throws {
        let old = noon - .seconds(400 * Self.day)
        let records = [
            try record(1) { $0.lastSeenAt = old },
            try record(2) { $0.lastSeenAt = noon },
            try record(3),
            try record(4) {
                $0.lastSeenAt = old
                $0.tags = ["beta"]
            },
            try record(5) {
                $0.lastSeenAt = old
                $0.registeredAt = noon
            },
            try record(6) { $0.lastSeenAt = noon },
            try record(7, topic: "other") { $0.lastSeenAt = old },
        ]
        _ = try await store.importDevices(records, now: old)
        let fans = try await store.importSegment("fans", mode: .replace)
        try await fans.append((1...7).map { .installation("install-\($0)") })
        _ = try await fans.commit(now: noon)
        let run = try await store.startRun(try definition())
        let lease = try await store.lease(run, limit: 2)
        var settlements = lease.settlements(.rejected, status: 410, reason: "Unregistered")
        settlements[0].effect = .gone(since: old)
        settlements[1].effect = .gone(since: noon - .seconds(10 * Self.day))
        _ = try await store.settleAndMark(run: run, settlements, now: noon)
    }
}
