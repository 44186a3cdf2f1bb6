import Model
import Store
import Testing

extension StoreUpkeepContract {
    @PromiseList static var restoring: [Promise] {
        Promise("a store marked as restored sends nothing of the lost time by itself, and uses no number again") {
            store in
            _ = try await store.importDevices(try (1...9).map { try record($0) }, now: noon)
            let open = try await store.startRun(try definition("open"))
            _ = try await store.lease(open, limit: 2)
            try await store.setScheduleMarks([ScheduleMark(campaign: "news", scheduleHash: 7, since: noon)])
            let feed = FeedState(url: "https://example.com/feed", etag: "\"1\"", polledAt: noon)
            #expect(try await store.recordFeedPoll(campaign: "c", feed, seen: ["a"], after: nil))
            let (dump, now) = (noon + .seconds(60), noon + .seconds(3600))
            let found = try await store.markRestored(since: dump, by: "amy", now: now)
            let restored = try #require(found)
            #expect(restored.runs.map(\.id) == [open] && restored.madeAt == dump && restored.restoredAt == now)
            let held = try #require(try await store.run(open))
            #expect(held.state == .paused && held.halt == .restored, "\(held)")
            #expect(try await store.restoreGap() == RestoreGap(madeAt: dump, restoredAt: now))
            #expect(try await store.scheduleMarks()["news"]?.since == now)
            let poll = try #require(try await store.feedState(campaign: "c"))
            #expect(!poll.isRead && poll.etag == nil)
            let events = try await store.events(run: nil, since: nil, limit: 100)
            let mark = try #require(events.first { $0.kind == EventKind.storeRestored.rawValue })
            #expect(mark.actor.name == "amy" && mark.detail == restored.summary && mark.id > 1_000_000)
            // The same mark again, as a step that is repeated.
            let again = try await store.markRestored(since: dump, by: "amy", now: now + .seconds(60))
            #expect(again == nil)
            #expect(try await store.restoreGap()?.restoredAt == now)

            let silent = try await store.startRun(try definition("silent", pushType: .background), now: now)
            #expect(silent > 1_000_000)
            let lease = try await store.lease(
                LeaseRequest(
                    run: silent, environment: .production, limit: 9, now: now + .seconds(1), owner: "a",
                    silentBudget: Configuration.SilentBudget()))
            #expect(lease.deliveries.isEmpty && lease.nextDue != nil, "\(lease)")
            let capped = try await store.startRun(try definition("capped"), now: now)
            let caps = [FrequencyCap(limit: 1, window: .seconds(3600))]
            #expect(try await store.capped(capped, caps, now: now + .seconds(1)).deliveries.isEmpty)
            let verified = try await store.verify(budgets: [wendercast: Configuration.SilentBudget()])
            #expect(verified.isSound, "\(verified.checks.filter { $0.faultCount > 0 })")
        }
        Promise("a later restore from another backup replaces the mark") { store in
            _ = try await store.markRestored(since: noon, by: "amy", now: noon + .seconds(60))
            let later = try await store.markRestored(since: noon + .seconds(90), by: "amy", now: noon + .seconds(120))
            #expect(later?.runs.isEmpty == true)
            #expect(
                try await store.restoreGap()
                    == RestoreGap(madeAt: noon + .seconds(90), restoredAt: noon + .seconds(120)))
        }
    }
}
