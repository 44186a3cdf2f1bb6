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
    }
}
