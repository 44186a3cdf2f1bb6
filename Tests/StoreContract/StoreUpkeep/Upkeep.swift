import Model
import Store
import Testing

extension StoreUpkeepContract {
    @PromiseList static var upkeep: [Promise] {
        Promise("a store with work behind it and work in flight is sound") { store in
            _ = try await store.importDevices(try (1...40).map { try record($0) }, now: noon)
            let alert = try await store.startRun(try definition())
            _ = try await store.settle(
                run: alert, try await store.lease(alert, limit: 10).settlements(.accepted), now: noon)
            _ = try await store.lease(alert, limit: 5)
            let silent = try await store.startRun(try definition("refresh", pushType: .background))
            for isSettled in [true, false] {
                let lease = try await store.lease(
                    LeaseRequest(
                        run: silent, environment: .production, limit: 7, now: noon, owner: "a",
                        silentBudget: Configuration.SilentBudget()))
                guard isSettled else { continue }
                _ = try await store.settle(run: silent, lease.settlements(.accepted), now: noon)
            }
            let found = try await store.verify(budgets: [wendercast: Configuration.SilentBudget()])
            #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })")
            #expect(found["silent_ledger"]?.compared == 7)
            #expect(
                try await store.verifyLedger(Configuration.SilentBudget())
                    == LedgerCheck(devices: 14, pushes: 14, violations: 0))
            #expect(try await store.integrity() == [])
            #expect(try await store.size().bytes > 0)
        }
        Promise("every push under caps is looked for in the ledger, whatever became of its device") { store in
            let records = try (1...70).map { number in try record(number) { $0.lastSeenAt = noon } }
            _ = try await store.importDevices(records, now: noon)
            let run = try await store.startRun(try definition())
            let sent = try await store.capped(run, caps, limit: 40)
            _ = try await store.settle(run: run, sent.settlements(.accepted), now: noon + .seconds(1))
            _ = try await store.capped(run, caps, now: noon + .seconds(2))
            try await expectCovered(store, 40)
            // Thirty of them are in doubt, and go out again.
            _ = try await store.recover(run, now: noon + .seconds(3))
            let again = try await store.capped(run, caps, now: noon + .seconds(4))
            _ = try await store.settle(run: run, again.settlements(.accepted), now: noon + .seconds(5))
            try await expectCovered(store, 70)
            // 2 turns out to be 1, 3 is removed, and the others have not been seen for long.
            _ = try await store.importDevices([try record(2, installation: "install-1")], now: noon + .seconds(6))
            try await expectCovered(store, 69)
            #expect(try await store.removeDevice(3, now: noon + .seconds(7), by: "amy") == .emptied)
            let pruned = try await store.pruneDevices(notSeenSince: noon + .seconds(8), dryRun: false, now: noon)
            #expect(pruned.total == 0 && pruned.kept > 60)
            try await expectCovered(store, 69)
        }
        Promise("only what is leased under caps is looked for, from when on all of a run is") { store in
            _ = try await store.importDevices(try (1...9).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            func send(_ lease: Lease, _ second: Int) async throws {
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(second))
            }
            try await send(try await store.lease(run, limit: 1), 1)
            let free = try await store.lease(run, limit: 1)
            // One is on its way without caps still.
            try await send(try await store.capped(run, caps, now: noon + .seconds(2), limit: 1), 3)
            try await send(free, 4)
            try await expectCovered(store, 0)
            try await send(try await store.capped(run, caps, now: noon + .seconds(5), limit: 2), 6)
            try await send(try await store.capped(run, caps, now: noon + .seconds(7), limit: 1), 8)
            try await expectCovered(store, 3)
            try await send(try await store.lease(run, limit: 1, now: noon + .seconds(9)), 10)
            try await expectCovered(store, 0)
        }
        Promise("what the ledger has forgotten is not looked for") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            for (name, now) in [("a", noon), ("b", noon + .seconds(9000)), ("c", noon + .seconds(90_000))] {
                let run = try await store.startRun(try definition(name), now: now)
                let lease = try await store.capped(run, caps, now: now)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: now)
                try await expectCovered(store, 3)
                guard name == "b" else { continue }
                try await store.release(run, by: "a", state: .finished, reason: nil, now: now)
            }
            let muchLater = noon + FrequencyCap.windowMax + FrequencyCap.windowMax + .seconds(90_010)
            _ = try await store.pruneOutcomes(finishedBefore: noon, dryRun: false, now: muchLater)
            try await expectCovered(store, 0)
        }
        Promise("an observation counts runs by state, and what each unfinished one has left") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 2)
            _ = try await store.settle(
                run: run, Array(lease.settlements(.retry(notBefore: noon + .seconds(30))).prefix(1)), now: noon)
            try await store.change(
                try await store.createRun(try definition(), occurrence: "2", now: noon, by: "a").run.id, to: .cancelled,
                reason: nil, now: noon, by: "ray")
            let early = try await store.observation(now: noon)
            #expect(early.runs == [.running: 1, .cancelled: 1])
            #expect(early.queues.map(\.run) == [run] && early.queues.map(\.pending) == [3])
            #expect(early.queues.map(\.leased) == [1] && early.queues.map(\.overdue) == [.zero])
            #expect(try await store.observation(now: noon + .seconds(45)).queues.map(\.overdue) == [.seconds(15)])
        }
        Promise("an observation says what waits for a person or for another server") { store in
            let empty = try await store.observation(now: noon)
            #expect(empty.halts.isEmpty && empty.pausedByPeople == 0 && empty.openApprovals == 0)
            #expect(empty.webhookMessages == 0 && empty.oldestWebhookMessage == nil)
            #expect(empty.failingFeeds == 0 && empty.backedUpAt == nil && empty.beganAt == nil)
            try await store.setWebhooks([Configuration.Webhook(url: "https://a.example", secretPath: "s")])
            for (number, halt) in [RunHalt.breaker, .breaker, .late].enumerated() {
                let run = try await store.startRun(try definition(), occurrence: "\(number)")
                try await store.release(run, by: "a", state: .paused, reason: "r", halt: halt, now: noon)
            }
            let person = try await store.startRun(try definition(), occurrence: "p")
            try await store.change(person, to: .paused, reason: nil, now: noon, by: "ray")
            let poll = FeedState(url: "https://example.com/feed", polledAt: noon, failures: 2, problem: "503")
            _ = try await store.recordFeedPoll(campaign: "c", poll, seen: [], after: nil)
            try await store.recordEvent(kind: .backedUp, run: nil, actor: "a", detail: "b.sqlite", now: noon)
            let late = noon + .seconds(9)
            try await store.recordEvent(kind: .backedUp, run: nil, actor: "a", detail: "b.sqlite", now: late)
            let seen = try await store.observation(now: late)
            #expect(seen.halts == [.breaker: 2, .late: 1] && seen.pausedByPeople == 1)
            #expect(seen.webhookMessages == 3 && seen.oldestWebhookMessage != nil)
            #expect(seen.failingFeeds == 1 && seen.backedUpAt == late && seen.beganAt == noon)
        }
    }

    private static let caps = [FrequencyCap(limit: 1, window: .seconds(3600))]

    /// The ledger of the frequency caps is sound, and so many pushes were looked for in it.
    private static func expectCovered(
        _ store: any AllRoles, _ pushes: Int, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let found = try await store.verify(budgets: [:])
        #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })", sourceLocation: sourceLocation)
        #expect(found[CapLedgerCheck.name]?.compared == pushes, sourceLocation: sourceLocation)
    }
}
