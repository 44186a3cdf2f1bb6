import Model
import Store
import Testing

/// Runs that wait for a person: late, or stopped by a breaker. Nobody is heard of for nine hours.
extension RunLogContract {
    private static let evening = noon + .seconds(9 * 3600)
    private static let minute = Duration.seconds(60)

    /// May go out ten minutes after its time.
    private static func hasty(_ change: (inout Campaign) -> Void = { _ in }) throws -> RunDefinition {
        try definition { campaign in
            var schedule = Schedule(trigger: .none)
            schedule.lateByMax = .seconds(600)
            campaign.schedule = schedule
            change(&campaign)
        }
    }

    /// A run for four devices whose sender had settled one and leased another when it died a minute after noon.
    private static func interrupted(_ store: any AllRoles) async throws -> Int64 {
        _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
        let run = try await store.startRun(try hasty())
        let first = try await store.lease(run, limit: 1)
        _ = try await store.settle(run: run, first.settlements(.accepted), now: noon)
        _ = try await store.lease(run, after: first.cursor, limit: 1)
        _ = try await store.heartbeat(run, owner: "a", now: noon + minute)
        return run
    }

    /// A run whose first stage has proved itself at noon.
    private static func judged(_ store: any AllRoles, _ stages: Stage...) async throws -> Int64 {
        var schedule = Schedule(trigger: .none)
        schedule.lateByMax = .seconds(600)
        let run = try await store.staged(300, stages, run: { $0.campaign.schedule = schedule })
        try await store.sendStage(of: run) { $0.settlements(.accepted) }
        _ = try await store.leaseStaged(run)
        return run
    }

    private static let reason =
        "3 of 4 were due from 2027-01-15 08:00 UTC, and no process has sent since 08:01; late_by_max is 10m; "
        + "`fanfare resume 1` sends them, `fanfare cancel 1` ends the run"

    private typealias Gap = (wave: Duration, gap: Duration, isLate: Bool)

    private static let gaps: [Gap] = [
        (.seconds(32_400), .seconds(18_000), false), (.seconds(32_400), .seconds(33_000), false),
        (.seconds(32_400), .seconds(33_001), true), (.seconds(18_000), .seconds(32_400), true),
    ]

    @PromiseList static var late: [Promise] {
        Promise.left("a run whose sender died is taken over in time, and late after that") { store in
            let run = try await interrupted(store)
            let inTime = noon + minute + .seconds(600)
            #expect(try await store.claim(run, by: "b", now: inTime) == .claimed)
            try await store.release(run, by: "b", state: .running, reason: nil, now: noon + minute)
            let found = try await store.claim(run, by: "c", now: inTime + .seconds(1))
            #expect(found == .late(reason))
        }
        Promise.left("what is late is on record with the reason, and every later claim hears it") { store in
            let run = try await interrupted(store)
            for owner in ["b", "c"] {
                let claim = try await store.claim(run, by: Actor(owner), now: evening)
                #expect(claim == .late(reason))
            }
            let late = try #require(try await store.run(run))
            #expect(late.state == .paused && late.halt == .late && late.pausedBy == nil)
            #expect(late.stateReason == reason && late.heartbeatAt == noon + minute)
            #expect(try await store.events(run: run).map(\.kind) == ["run_created", "run_claimed", "run_late"])
            #expect(try await store.events(run: run).last?.detail == reason)
            #expect(try await store.openRuns(for: "d", inHand: []).isEmpty)
            #expect(try await store.haltedRuns().map(\.id) == [run])
            try await store.expectSumsClose(run)
            #expect(try await store.summary(run: run).leased == 1)
        }
        Promise.left("a person's word lets a late run go on, and what was in flight is recovered as ever") { store in
            let run = try await interrupted(store)
            _ = try await store.claim(run, by: "b", now: evening)
            try await store.change(run, to: .running, reason: nil, now: evening, by: "ray")
            let later = evening + .seconds(599)
            #expect(try await store.claim(run, by: "b", now: later) == .claimed)
            #expect(try await store.run(run)?.halt == nil)
            #expect(try await store.haltedRuns().isEmpty)
            #expect(try await store.recover(run, now: later).resent == 1)
            #expect(try await store.lease(run, now: later, owner: "b").deliveries.count == 3)
        }
        Promise.left("a run whose sender died while a stage held it is late from the end of the hold on") { store in
            let hold = Duration.seconds(3 * 3600)
            let run = try await judged(store, Stage(.share(50), hold: hold, toleratePercent: 20), Stage(.rest))
            _ = try await store.heartbeat(run, owner: "a", now: noon + minute)
            let last = noon + hold + .seconds(600)
            #expect(try await store.claim(run, by: "b", now: last) == .claimed)
            try await store.release(run, by: "b", state: .running, reason: nil, now: noon + minute)
            guard case .late(let reason) = try await store.claim(run, by: "c", now: last + .seconds(1)) else {
                Issue.record("nobody was too late")
                return
            }
            #expect(reason.contains("due from 2027-01-15 11:00 UTC"))
        }
        Promise.left("a run that waited for a person all day is not late by that") { store in
            let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest, needsApproval: true)]
            let run = try await judged(store, stages[0], stages[1])
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon + minute)
            #expect(try await store.approveStage(of: run, stage: 1, by: "eve", now: evening))
            #expect(try await store.claim(run, by: "b", now: evening + .seconds(600)) == .claimed)
        }
        Promise.left("let go on and then left alone once more, it is late once more") { store in
            let run = try await interrupted(store)
            _ = try await store.claim(run, by: "b", now: evening)
            try await store.change(run, to: .running, reason: nil, now: evening, by: "ray")
            let claim = try await store.claim(run, by: "b", now: evening + .seconds(601))
            guard case .late = claim else {
                Issue.record("\(claim)")
                return
            }
        }
        Promise.left("who says resume before anybody found it late has said it") { store in
            let run = try await interrupted(store)
            try await store.change(run, to: .running, reason: nil, now: evening, by: "ray")
            #expect(try await store.claim(run, by: "b", now: evening + minute) == .claimed)
            #expect(try await store.events(run: run).map(\.actor.name) == ["test", "a", "ray", "b"])
        }
        Promise.left("a late run is cancelled like any other") { store in
            let run = try await interrupted(store)
            _ = try await store.claim(run, by: "b", now: evening)
            try await store.change(run, to: .cancelled, reason: "too late", now: evening, by: "ray")
            let counts = try await store.summary(run: run)
            #expect(counts.accepted == 1 && counts.unknown == 1 && counts.suppressed == 2)
            #expect(try await store.haltedRuns().isEmpty)
            try await store.expectSumsClose(run)
        }
        Promise.left("the time that nobody sends a run is not the time since its owner gave it up and another looked") {
            store in
            // Given up, recovered by whoever looked, claimed: only owners and persons count.
            let run = try await interrupted(store)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon + .seconds(120))
            #expect(try await store.run(run)?.heartbeatAt == noon + .seconds(120))
            #expect(try await store.run(run)?.owner == nil)
            #expect(try await store.abandonedRuns().isEmpty)
            #expect(try await store.run(run)?.heartbeatAt == noon + .seconds(120))
        }
        Promise.left("a run that nobody ever took is late, too, and so is one that was not frozen") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            for (occurrence, owner) in [("untouched", nil), ("unfrozen", "a" as Actor?)] {
                let run = try await store.createRun(try hasty(), occurrence: occurrence, now: noon, by: "test").run.id
                if let owner { _ = try await store.claim(run, by: owner, now: noon) }
                let claim = try await store.claim(run, by: "b", now: evening)
                guard case .late(let words) = claim else {
                    Issue.record("\(occurrence): \(claim)")
                    continue
                }
                #expect(
                    words.hasPrefix("the run was due from 2027-01-15 08:00 UTC, and no process has "), "\(words)")
            }
        }
        Promise.each(gaps, { "a wave that is to come is waited for, one that is over is late: \($0)" }) { store, row in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try hasty())
            let lease = try await store.lease(run)
            let retry = lease.settlements(.retry(notBefore: noon + row.wave))
            _ = try await store.settle(run: run, retry, now: noon)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            let claim = try await store.claim(run, by: "b", now: noon + row.gap)
            if case .late = claim { #expect(row.isLate) } else { #expect(!row.isLate && claim == .claimed) }
        }
        Promise.left("a run with nothing left to send is brought to its end, and a test is never late") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let done = try await store.startRun(try hasty())
            _ = try await store.settle(run: done, try await store.lease(done).settlements(.accepted), now: noon)
            try await store.release(done, by: "a", state: .running, reason: nil, now: noon)
            #expect(try await store.claim(done, by: "b", now: evening) == .claimed)
            let test = try await store.createTestRun(try hasty(), occurrence: "t", device: 1, now: noon, by: "ray").id
            #expect(try await store.claim(test, by: "b", now: evening) == .claimed)
        }
    }

    @PromiseList static var halted: [Promise] {
        Promise.left("what APNs' trouble paused is taken up again, unless it is late by then") { store in
            for halt in [RunHalt.unreachable, .credential] {
                _ = try await store.importDevices([try record(1)], now: noon)
                let run = try await store.startRun(try hasty(), occurrence: halt.rawValue)
                for _ in 0..<2 {
                    try await store.release(run, by: "a", state: .paused, reason: "away", halt: halt, now: noon)
                    #expect(try await store.run(run)?.halt == halt)
                    #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
                }
                try await store.release(run, by: "a", state: .paused, reason: "away", halt: halt, now: noon)
                let claim = try await store.claim(run, by: "a", now: evening)
                guard case .late = claim else {
                    Issue.record("\(claim)")
                    continue
                }
            }
        }
        Promise.left("what a breaker stops waits for a person, although its sender died before it could give it up") {
            store in
            let run = try await interrupted(store)
            try await store.halt(run, by: "a", .breaker, reason: "wrong topic", now: noon + minute)
            try await store.halt(run, by: "a", .breaker, reason: "said once more", now: noon + minute)
            #expect(try await store.heartbeat(run, owner: "a", now: noon + minute) == .paused)
            #expect(try await store.run(run)?.owner == "a")
            #expect(try await store.claim(run, by: "b", now: noon + minute) == .breakerOpen("wrong topic"))
            #expect(try await store.events(run: run).map(\.kind) == ["run_created", "run_claimed", "run_paused"])
            await #expect(throws: StoreError.self) {
                try await store.halt(run, by: "b", .breaker, reason: "not mine", now: noon + minute)
            }
        }
        Promise.left("what a breaker stops at the very end is not ended by whoever has seen the end") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 1)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            try await store.halt(run, by: "a", .breaker, reason: "wrong topic", now: noon)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            let left = try #require(try await store.run(run))
            #expect(left.state == .paused && left.halt == .breaker && left.owner == nil && left.finishedAt == nil)
            #expect(try await store.claim(run, by: "b", now: noon) == .breakerOpen("wrong topic"))
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.claim(run, by: "b", now: noon) == .claimed)
            try await store.release(run, by: "b", state: .finished, reason: nil, now: noon)
            #expect(try await store.run(run)?.state == .finished)
        }
        Promise.left("a person's pause stays theirs when a breaker falls after it") { store in
            let run = try await interrupted(store)
            try await store.change(run, to: .paused, reason: "wait", now: noon + minute, by: "ray")
            try? await store.halt(run, by: "a", .breaker, reason: "wrong topic", now: noon + minute)
            let paused = try #require(try await store.run(run))
            #expect(paused.pausedBy == "ray" && paused.halt == nil)
        }
        Promise.left("what a breaker paused waits for a person, however soon somebody asks") { store in
            let run = try await store.startRun(try hasty())
            try await store.release(run, by: "a", state: .paused, reason: "wrong topic", halt: .breaker, now: noon)
            for moment in [noon, evening] {
                let claim = try await store.claim(run, by: "a", now: moment)
                #expect(claim == .breakerOpen("wrong topic"))
            }
            #expect(try await store.haltedRuns().map(\.halt) == [.breaker])
            try await store.change(run, to: .running, reason: nil, now: evening, by: "ray")
            #expect(try await store.claim(run, by: "a", now: evening) == .claimed)
        }
        Promise.left("the oldest unfinished run of a campaign is found by how its occurrence begins") { store in
            func make(_ name: String, _ occurrence: String, isTest: Bool = false) async throws -> Int64 {
                try await store.createRun(
                    try definition(name), occurrence: occurrence, isTest: isTest, now: noon, by: "test"
                ).run.id
            }
            func found() async throws -> Int64? {
                try await store.unfinishedRuns(campaign: "news", occurrencePrefix: "timer-").first?.id
            }
            let done = try await make("news", "timer-2026-11-20")
            try await store.change(done, to: .cancelled, reason: nil, now: noon, by: "ray")
            _ = try await make("news", "timer-test", isTest: true)
            _ = try await make("news", "episode-timer-1")
            _ = try await make("other", "timer-2026-11-20")
            #expect(try await found() == nil)
            let first = try await make("news", "timer-2026-11-21")
            let second = try await make("news", "timer-2026-11-22")
            #expect(try await found() == first)
            let all = try await store.unfinishedRuns(campaign: "news", occurrencePrefix: "timer-")
            #expect(all.map(\.id) == [first, second])
            try await store.change(first, to: .paused, reason: nil, now: noon, by: "ray")
            #expect(try await found() == first)
            try await store.change(first, to: .cancelled, reason: nil, now: noon, by: "ray")
            #expect(try await found() == second)
        }
        Promise.left("an occurrence that was refused is told from one that failed") { store in
            for state in [RunState.missed, .failed] {
                _ = try await store.createEndedRun(
                    try definition(), occurrence: state.rawValue, state: state, reason: "why", now: noon, by: "timer")
            }
            let failed = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            try await store.change(failed, to: .failed, reason: "no key", now: noon, by: "test")
            #expect(try await store.runs(limit: 9).map(\.isRefused) == [false, true, false])
        }
    }
}
