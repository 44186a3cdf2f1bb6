import Model
import Store
import Testing

/// Runs that are so much more than usual that they wait for a person. `noon` is on a Friday.
extension RunLogContract {
    private static let week = Duration.seconds(7 * 86_400)
    private static let reason =
        "would send 20; usual for new-podcast on Fridays is 2 (median of the last 3); volume_brake allows 5 times as "
        + "many; `fanfare resume 4` sends it, `fanfare cancel 4` ends the run"

    /// Five times the usual of two is ten.
    private static func request(
        _ reach: Int, campaign: String = "new-podcast", actor: String? = nil, previous: Int? = nil
    ) -> VolumeRequest {
        VolumeRequest(
            brake: Configuration.VolumeBrake(times: 5, atLeast: 3, maxGrowthPercent: previous == nil ? nil : 100),
            campaign: campaign, actor: actor, reach: reach,
            previous: previous.map { VolumeRequest.Previous(run: 1, reach: $0) })
    }

    private static func reaching(_ count: Int, _ name: String = "new-podcast") throws -> RunDefinition {
        let installs = (1...count).map { AudienceValue.text("install-\($0)") }
        return try definition(name, audience: .oneOf(.installationID, installs))
    }

    /// Two devices on each of three Fridays before, by "test".
    private static func usual(_ store: any AllRoles) async throws {
        _ = try await store.importDevices(try (1...20).map { try record($0) }, now: noon - week * 4)
        for number in [3, 2, 1] {
            _ = try await store.startRun(
                try reaching(2), occurrence: "before-\(number)", now: noon - week * number)
        }
    }

    private static func make(
        _ store: any AllRoles, _ definition: RunDefinition, _ occurrence: String, _ request: VolumeRequest
    ) async throws -> Run {
        try await store.createRun(
            definition, occurrence: occurrence, now: noon, by: "test", notes: [], volume: request
        ).run
    }

    private static func limited(
        _ store: any AllRoles, _ limits: ReachLimits, _ occurrence: String = "o", volume: VolumeRequest? = nil
    ) async throws -> Run {
        try await store.createRun(
            try definition(), occurrence: occurrence, now: noon, by: "test", notes: [], volume: volume, limits: limits
        ).run
    }

    /// Nil: it was written down.
    private static func refusedFreeze(_ store: any AllRoles, _ run: Int64) async throws -> AudienceGrew? {
        #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
        do {
            _ = try await store.freeze(run, by: "a", now: noon) { _ in }
            return nil
        } catch let grown as AudienceGrew {
            return grown
        }
    }

    @PromiseList static var volume: [Promise] {
        Promise("a run of far more than usual is made paused, and nobody but a person lets it go") { store in
            try await usual(store)
            let held = try await make(store, try reaching(20), "o", request(20))
            #expect(held.state == .paused && held.halt == .volume && held.pausedBy == nil)
            #expect(held.stateReason == reason)
            #expect(try await store.run(held.id) == held)
            #expect(try await store.openRuns(for: "b", inHand: []).allSatisfy { $0.id != held.id })
            #expect(try await store.haltedRuns().map(\.id) == [held.id])
            for owner in ["b", "c"] {
                #expect(try await store.claim(held.id, by: Actor(owner), now: noon + week) == .halted(reason))
            }
            // The same call again finds it as it is.
            let again = try await store.createRun(
                try reaching(20), occurrence: "o", now: noon, by: "test", notes: [], volume: request(2))
            #expect(again.run == held && !again.isNew)
            #expect(try await store.events(run: held.id).map(\.kind) == ["run_created", "run_paused"])
            try await store.change(held.id, to: .running, reason: "it is Christmas", now: noon, by: "ray")
            #expect(try await store.events(run: held.id).last?.detail == "it is Christmas")
            #expect(try await store.claim(held.id, by: "b", now: noon) == .claimed)
            #expect(try await store.freeze(held.id, by: "b", now: noon) { _ in }.pending == 20)
            #expect(try await store.run(held.id)?.halt == nil)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("as much as the brake lets go is made as ever, and what is not weighed is, too") { store in
            try await usual(store)
            #expect(try await make(store, try reaching(10), "o", request(10)).state == .scheduled)
            let unweighed = try await store.createRun(try reaching(20), occurrence: "p", now: noon, by: "test").run
            #expect(unweighed.state == .scheduled)
        }
        Promise("what was sent today counts with it, and what is about to be sent") { store in
            try await usual(store)
            _ = try await store.startRun(try reaching(8), occurrence: "today")
            let more = try await make(store, try reaching(3), "o", request(3))
            #expect(more.stateReason?.hasPrefix("would send 3, 11 with today's earlier pushes; ") == true)
            try await store.change(more.id, to: .cancelled, reason: nil, now: noon, by: "ray")
            #expect(try await make(store, try reaching(2), "p", request(2)).state == .scheduled)
        }
        Promise("of two that are made at the same time the second sees the first") { store in
            try await usual(store)
            let made = try await withThrowingTaskGroup(of: Run.self) { group in
                for number in 1...2 {
                    group.addTask { try await make(store, try reaching(6), "o\(number)", request(6)) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(made.map(\.state)) == [.scheduled, .paused])
        }
        Promise("a new campaign is weighed by what is usual of whoever starts it") { store in
            try await usual(store)
            let rows: [(actor: String?, state: RunState)] = [
                ("test", .paused), ("ray", .scheduled), (nil, .scheduled),
            ]
            for (number, row) in rows.enumerated() {
                let name = "fresh-\(number)"
                let run = try await make(
                    store, try reaching(20, name), "o", request(20, campaign: name, actor: row.actor))
                #expect(run.state == row.state)
                #expect(run.stateReason?.contains("usual for test on Fridays is 2") ?? (row.state == .scheduled))
            }
        }
        Promise("tests and corrections are no history") { store in
            _ = try await store.importDevices(try (1...20).map { try record($0) }, now: noon - week * 4)
            let first = try await store.startRun(try reaching(2), occurrence: "first", now: noon - week * 3)
            for number in [2, 1] {
                var correction = try reaching(2)
                correction.correction = Correction(of: first, .replace)
                _ = try await store.startRun(correction, occurrence: "c-\(number)", now: noon - week * number)
                _ = try await store.createTestRun(
                    try reaching(2), occurrence: "t-\(number)", device: 1, now: noon - week * number, by: "test")
            }
            let run = try await make(store, try reaching(20), "o", request(20, actor: "test"))
            #expect(run.state == .scheduled)
        }
        Promise("a held run that somebody pauses as well still says what it was held for") { store in
            try await usual(store)
            let held = try await make(store, try reaching(20), "o", request(20))
            try await store.change(held.id, to: .paused, reason: "lunch", now: noon, by: "ray")
            let paused = try #require(try await store.run(held.id))
            #expect(paused.halt == .volume && paused.pausedBy == "ray")
            #expect(paused.stateReason?.hasPrefix("lunch; before: would send 20") == true)
            try await store.change(held.id, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.run(held.id)?.halt == nil)
        }
        Promise("what grew since it was weighed is not written down, until a person has seen by how much") { store in
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            let run = try await limited(store, ReachLimits(reach: 10, most: 11))
            _ = try await store.importDevices(try (11...30).map { try record($0) }, now: noon)
            let grown = try await refusedFreeze(store, run.id)
            #expect(grown?.reach == 30 && grown?.halt == .volume)
            let held = try #require(try await store.run(run.id))
            #expect(held.state == .paused && held.halt == .volume && held.counts == DeliveryCounts())
            #expect(held.stateReason?.contains("30 devices now, but was checked for 10") == true)
            try await store.release(run.id, by: "a", state: .running, reason: nil, now: noon)
            #expect(try await store.claim(run.id, by: "b", now: noon) == .halted(held.stateReason ?? ""))
            try await store.change(run.id, to: .running, reason: "it is right", now: noon, by: "ray")
            // A tenth more than was seen, and not beyond.
            _ = try await store.importDevices(try (31...34).map { try record($0) }, now: noon)
            #expect(try await refusedFreeze(store, run.id)?.reach == 34)
            try await store.release(run.id, by: "a", state: .running, reason: nil, now: noon)
            try await store.change(run.id, to: .running, reason: "still right", now: noon, by: "ray")
            #expect(try await store.claim(run.id, by: "a", now: noon) == .claimed)
            #expect(try await store.freeze(run.id, by: "a", now: noon) { _ in }.pending == 34)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("what grew beyond what was approved is never sent") { store in
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            let run = try await limited(store, ReachLimits(reach: 10, most: 40, bound: 10))
            _ = try await store.importDevices([try record(11)], now: noon)
            #expect(try await refusedFreeze(store, run.id)?.halt == .grown)
            try await store.release(run.id, by: "a", state: .running, reason: nil, now: noon)
            for _ in 0..<2 {
                await #expect(throws: StoreError.grownBeyondApproval(run: run.id)) {
                    try await store.change(run.id, to: .running, reason: nil, now: noon, by: "ray")
                }
                try await store.change(run.id, to: .paused, reason: "hm", now: noon, by: "ray")
            }
            #expect(try await store.run(run.id)?.halt == .grown)
            try await store.change(run.id, to: .cancelled, reason: nil, now: noon, by: "ray")
            #expect(try await store.run(run.id)?.counts == DeliveryCounts())
            let fewer = try await limited(store, ReachLimits(reach: 12, bound: 11), "p")
            #expect(try await store.claim(fewer.id, by: "a", now: noon) == .claimed)
            #expect(try await store.freeze(fewer.id, by: "a", now: noon) { _ in }.pending == 11)
        }
        Promise("runs of today whose audience is not written down count what each was weighed with") { store in
            try await usual(store)
            let brake = request(6)
            let first = try await limited(store, ReachLimits(reach: 6), "a", volume: brake)
            #expect(first.state == .scheduled)
            let held = try await limited(store, ReachLimits(reach: 5), "b", volume: request(5))
            #expect(held.state == .paused)
            // What waits for a person counts once they let it go.
            #expect(try await store.volumeHold(request(4), now: noon) == nil)
            #expect(try await store.volumeHold(request(5), now: noon) != nil)
            try await store.change(held.id, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.volumeHold(request(1), now: noon) != nil)
            try await store.change(first.id, to: .cancelled, reason: nil, now: noon, by: "ray")
            #expect(try await store.volumeHold(request(5), now: noon) == nil)
            #expect(try await store.volumeHold(request(6), now: noon) != nil)
        }
        Promise("an audience that grew beyond the bound waits as well") { store in
            let run = try await make(store, try reaching(20), "o", request(20, previous: 9))
            #expect(run.halt == .volume && run.stateReason?.contains("run 1 reached 9") == true)
            #expect(try await make(store, try reaching(18), "p", request(18, previous: 9)).state == .scheduled)
        }
    }
}
