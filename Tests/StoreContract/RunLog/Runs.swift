import Model
import Store
import Testing

extension RunLogContract {
    @PromiseList static var runs: [Promise] {
        Promise("an occurrence makes one run, however often it is asked for") { store in
            let first = try await store.createRun(try definition(), occurrence: "2026-11-21", now: noon, by: "timer")
            let changed = try definition { $0.maxAttempts = 1 }
            let again = try await store.createRun(changed, occurrence: "2026-11-21", now: noon, by: "ray")
            #expect(first.isNew && !again.isNew)
            #expect(again.run == first.run)
            #expect(again.run.definition == (try definition()))
            let other = try await store.createRun(changed, occurrence: "2026-11-22", now: noon, by: "ray")
            #expect(other.isNew)
            // The second request used up no number.
            #expect(other.run.id == first.run.id + 1)
            #expect(try await store.runs(limit: 10).map(\.id) == [other.run.id, first.run.id])
            #expect(try await store.latestRun(campaign: "new-podcast")?.id == other.run.id)
            #expect(try await store.run(campaign: "new-podcast", occurrence: "2026-11-21")?.id == first.run.id)
            #expect(try await store.events(run: first.run.id).map(\.actor) == ["timer"])
        }
        Promise("many callers at once get the same run") { store in
            let definition = try definition()
            let made = try await withThrowingTaskGroup(of: (Int64, Bool).self) { group in
                for caller in 0..<20 {
                    group.addTask {
                        let made = try await store.createRun(
                            definition, occurrence: "x", now: noon, by: Actor("\(caller)"))
                        return (made.run.id, made.isNew)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(made.map(\.0)).count == 1)
            #expect(made.count { $0.1 } == 1)
        }
        Promise(
            "a claim holds for as long as its owner lives, however long it is silent, by any clock",
            opening: { stores in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
                #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
                #expect(try await store.heartbeat(run, owner: "a", now: noon + .seconds(10)) == .running)
                let held = RunClaim.held(by: "a", heartbeat: noon + .seconds(10))
                for moment in [noon + .seconds(25), noon + .seconds(86_400), noon - .seconds(86_400)] {
                    #expect(try await store.claim(run, by: "b", now: moment) == held)
                    #expect(try await store.openRuns(for: "b", inHand: []).isEmpty)
                }
                let later = noon + .seconds(11)
                owners.end("a")
                #expect(try await store.claim(run, by: "b", now: later) == .claimed)
                let lost = StoreError.lostClaim(run: run, holder: "b")
                await #expect(throws: lost) { try await store.heartbeat(run, owner: "a", now: later) }
                await #expect(throws: lost) { try await store.lease(run, now: later) }
                await #expect(throws: lost) {
                    try await store.release(run, by: "a", state: .paused, reason: nil, now: later)
                }
                try await store.release(run, by: "b", state: .running, reason: nil, now: later)
                #expect(try await store.run(run)?.state == .running)
                #expect(try await store.claim(run, by: "c", now: later) == .claimed)
                #expect(try await store.run(run)?.startedAt == noon)
            })
        Promise("a run does not finish while deliveries are left") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 1)
            await #expect(throws: StoreError.notFinished(run: run, pending: 1, leased: 1)) {
                try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            }
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            let rest = try await store.lease(run, after: lease.cursor)
            _ = try await store.settle(run: run, rest.settlements(.accepted), now: noon)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            #expect(try await store.run(run)?.finishedAt == noon)
            await #expect(throws: StoreError.runIsOver(run: run, state: .finished)) {
                try await store.claim(run, by: "a", now: noon)
            }
        }
        Promise("cancelling a run nobody sends ends it at once") { store in
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 3)
            try await store.release(run, by: "a", state: .paused, reason: "lunch", now: noon)
            try await store.change(run, to: .cancelled, reason: "typo", now: noon, by: "ray")
            let cancelled = try #require(try await store.run(run))
            #expect(cancelled.state == .cancelled && cancelled.stateReason == "typo" && cancelled.finishedAt == noon)
            #expect(cancelled.counts.unknown == 3 && cancelled.counts.suppressed == 7)
            try await store.expectSumsClose(run)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["cancelled"])
        }
        Promise("cancelling a run in progress is its owner's to carry out") { store in
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 3)
            try await store.change(run, to: .cancelled, reason: "typo", now: noon, by: "ray")
            #expect(try await store.heartbeat(run, owner: "a", now: noon) == .cancelled)
            #expect(try await store.summary(run: run).pending == 7)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            let counts = try await store.summary(run: run)
            #expect(counts.accepted == 3 && counts.suppressed == 7)
            try await store.expectSumsClose(run)
        }
        Promise(
            "a cancelled run whose owner died is ended by the next claim",
            opening: { stores in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
                let run = try await store.startRun(try definition())
                _ = try await store.lease(run, limit: 1)
                try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "ray")
                owners.end("a")
                await #expect(throws: StoreError.runIsOver(run: run, state: .cancelled)) {
                    try await store.claim(run, by: "b", now: noon)
                }
                let counts = try await store.summary(run: run)
                #expect(counts.unknown == 1 && counts.suppressed == 3)
            })
        Promise.each(
            [
                (RunState.paused, RunState.missed), (.missed, .running), (.cancelled, .running),
                (.scheduled, .finished),
            ], { "an arrow the states do not have is refused: \($0)" }
        ) { store, row in
            let (from, to) = row
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            if from != .scheduled { try await store.change(run, to: from, reason: nil, now: noon, by: "test") }
            await #expect(throws: StoreError.illegalChange(run: run, from: from, to: to)) {
                try await store.change(run, to: to, reason: nil, now: noon, by: "test")
            }
        }
        Promise("a pause somebody asked for keeps their reason, and waits for them") { store in
            let run = try await store.startRun(try definition())
            try await store.change(run, to: .paused, reason: "wrong link", now: noon, by: "ray")
            #expect(try await store.heartbeat(run, owner: "a", now: noon) == .paused)
            try await store.release(run, by: "a", state: .paused, reason: nil, now: noon)
            #expect(try await store.run(run)?.stateReason == "wrong link")
            let held = RunClaim.paused(by: "ray", reason: "wrong link")
            #expect(try await store.claim(run, by: "a", now: noon) == held)
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
            #expect(try await store.run(run)?.state == .running)
        }
        Promise("a run that paused itself goes on with the next claim, unless a person made the pause theirs") {
            store in
            let run = try await store.startRun(try definition())
            try await store.release(run, by: "a", state: .paused, reason: "breaker", now: noon)
            #expect(try await store.run(run)?.pausedBy == nil)
            #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
            try await store.release(run, by: "a", state: .paused, reason: "breaker", now: noon)
            try await store.change(run, to: .paused, reason: "hands off", now: noon, by: "ray")
            let held = RunClaim.paused(by: "ray", reason: "hands off")
            #expect(try await store.claim(run, by: "a", now: noon) == held)
        }
        Promise("a run that is not there is said so") { store in
            let missing = try await store.run(7)
            #expect(missing == nil)
            await #expect(throws: StoreError.noSuchRun(7)) { try await store.report(7) }
            await #expect(throws: StoreError.noSuchRun(7)) { try await store.freeze(7, now: noon) { _ in } }
            await #expect(throws: StoreError.noSuchRun(7)) {
                try await store.claim(7, by: "a", now: noon)
            }
        }
    }
}
