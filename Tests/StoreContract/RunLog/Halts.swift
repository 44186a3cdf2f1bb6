import Model
import Store
import Testing

/// Runs that paused themselves and continue without a person.
extension RunLogContract {
    private static let minute = Duration.seconds(60)

    private static func paused(
        _ store: any AllRoles, _ halt: RunHalt, lateByMax: Duration = .seconds(3600), webhook: Bool = false
    ) async throws -> Int64 {
        if webhook { try await store.setWebhooks([.init(url: "https://a.example", secretPath: "/s")]) }
        _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
        let run = try await store.startRun(
            try definition { campaign in
                var schedule = Schedule(trigger: .none)
                schedule.lateByMax = lateByMax
                campaign.schedule = schedule
            })
        try await store.release(run, by: "a", state: .paused, reason: "away", halt: halt, now: noon)
        return run
    }

    /// An attempt that meets the same trouble.
    private static func tryInVain(_ store: any AllRoles, _ run: Int64, at now: Timestamp) async throws {
        #expect(try await store.claim(run, by: "a", now: now) == .claimed)
        // What is given back is due again from now on.
        let lease = try await store.lease(run, now: now)
        _ = try await store.settle(run: run, lease.settlements(.retry(notBefore: now)), now: now)
        try await store.release(run, by: "a", state: .paused, reason: "away", halt: .unreachable, now: now)
    }

    @PromiseList static var halts: [Promise] {
        Promise.each(RunHalt.allCases, { "a run halted by \($0) is open exactly if it waits for no person" }) {
            store, halt in
            let run = try await paused(store, halt)
            let open = try await store.openRuns(for: "b", inHand: []).map(\.id)
            #expect(open == (halt.waitsForPerson ? [] : [run]))
            #expect(try await store.haltedRuns().map(\.id) == (halt.waitsForPerson ? [run] : []))
            #expect(try await store.openRuns(for: "b", inHand: [run]).isEmpty)
            #expect(try await store.run(run)?.haltedAt == (halt.waitsForPerson ? nil : noon))
        }
        Promise("a run that a person paused as well is not open") { store in
            let run = try await paused(store, .unreachable)
            try await store.change(run, to: .paused, reason: nil, now: noon, by: "ray")
            #expect(try await store.openRuns(for: "b", inHand: []).isEmpty)
            #expect(try await store.run(run)?.haltedAt == nil)
        }
        Promise("attempts in vain keep the moment of the first pause, and a response of APNs ends the series") {
            store in
            let run = try await paused(store, .unreachable)
            try await tryInVain(store, run, at: noon + minute)
            #expect(try await store.run(run)?.haltedAt == noon)
            #expect(try await store.run(run)?.heartbeatAt == noon + minute)
            let back = noon + .seconds(120)
            #expect(try await store.claim(run, by: "a", now: back) == .claimed)
            let lease = try await store.lease(run, limit: 1, now: back)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: back)
            try await store.release(run, by: "a", state: .paused, reason: "away", halt: .unreachable, now: back)
            #expect(try await store.run(run)?.haltedAt == back)
        }
        Promise.left("a sender that died in such an attempt ends the series") { store in
            let run = try await paused(store, .unreachable)
            #expect(try await store.claim(run, by: "a", now: noon + minute) == .claimed)
            #expect(try await store.claim(run, by: "b", now: noon + minute) == .claimed)
            #expect(try await store.run(run)?.haltedAt == nil)
        }
        Promise("attempts in vain do not keep a run from becoming late") { store in
            let run = try await paused(store, .unreachable, lateByMax: .seconds(600))
            try await tryInVain(store, run, at: noon + .seconds(300))
            try await tryInVain(store, run, at: noon + .seconds(600))
            let claim = try await store.claim(run, by: "a", now: noon + .seconds(601))
            guard case .late = claim else {
                Issue.record("\(claim)")
                return
            }
            let late = try #require(try await store.run(run))
            #expect(late.halt == .late && late.haltedAt == nil)
            #expect(try await store.openRuns(for: "b", inHand: []).isEmpty)
        }
        Promise("a webhook hears of the first pause of a series, and of the lateness that ends it") { store in
            let run = try await paused(store, .unreachable, lateByMax: .seconds(600), webhook: true)
            for turn in 1...3 { try await tryInVain(store, run, at: noon + minute * turn) }
            _ = try await store.claim(run, by: "a", now: noon + .seconds(601))
            let messages = try await store.takeWebhookMessages(now: noon + .seconds(700), limit: 9, until: noon)
            #expect(messages.map(\.kind) == [.paused, .late])
            #expect(try await store.events(run: run).count { $0.kind == "run_paused" } == 4)
        }
    }
}
