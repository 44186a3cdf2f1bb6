package import Model
package import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var staging: [Promise] {
        Promise("a stage is leased alone, a few first and more as more are answered, and the rest after it") {
            store in
            let run = try await store.staged(100, [Stage(.share(20), toleratePercent: 50), Stage(.rest)])
            let size = try await store.stages(of: run)[0].size
            #expect((10...35).contains(size))
            var sent = 0
            var most: [Int] = []
            while sent < size {
                let lease = try await store.leaseStaged(run)
                #expect(lease.deliveries.allSatisfy { $0.stage == 0 })
                try #require(!lease.deliveries.isEmpty)
                most.append(lease.deliveries.count)
                // Nothing more while these are in flight.
                #expect(try await store.leaseStaged(run).deliveries.isEmpty)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                sent += lease.deliveries.count
            }
            #expect(most[0] == StageController.firstMost && sent == size)
            let rest = try await store.leaseStaged(run)
            #expect(rest.deliveries.count == 100 - size && rest.deliveries.allSatisfy { $0.stage == nil })
            let records = try await store.stages(of: run)
            #expect(records[0].answers == StageAnswers(answered: size))
            #expect(records[0].decision?.verdict == .go && records[1].openedAt == noon)
            _ = try await store.settle(run: run, rest.settlements(.accepted), now: noon)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            try await store.expectSumsClose(run)
        }
        Promise("a stage that fails halts the run with the answers that show it, and nothing else is leased") { store in
            let run = try await store.staged(200, [Stage(.share(50)), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.rejected, status: 400, reason: "BadDeviceToken") }
            let record = try await store.stages(of: run)[0]
            #expect(record.answers == StageAnswers(answered: 6, failed: 6))
            let decision = try #require(record.decision)
            #expect(decision.verdict == .halt && decision.answers == record.answers && decision.unanswered == nil)
            let halted = try #require(try await store.run(run))
            #expect(halted.state == .paused && halted.halt == .stage && halted.pausedBy == nil)
            let reason = try #require(halted.stateReason)
            #expect(
                reason.contains("stage 1 (50 %) was halted, too many pushes were rejected")
                    && reason.contains("fanfare resume")
            )
            #expect(try await store.leaseStaged(run).isPaused)
            try await store.expectSumsClose(run)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            guard case .halted(let why) = try await store.claim(run, by: "b", now: noon) else {
                Issue.record("somebody took a halted run")
                return
            }
            #expect(why == reason)
            #expect(try await store.haltedRuns().map(\.id) == [run])
        }
        Promise("a person's resume goes on with a halted stage and then with the rest") { store in
            let run = try await store.staged(60, [Stage(.share(50)), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.rejected, status: 400) }
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.stages(of: run)[0].releasedBy == "ray")
            let size = try await store.stages(of: run)[0].size
            let second = try await store.leaseStaged(run)
            #expect(second.deliveries.count == size - 6 && second.deliveries.allSatisfy { $0.stage == 0 })
            _ = try await store.settle(run: run, second.settlements(.accepted), now: noon)
            #expect(try await store.leaseStaged(run).deliveries.count == 60 - size)
            #expect(try await store.run(run)?.state == .running)
        }
        Promise("a stage that proves nothing waits for a person, and silence is never success") { store in
            let run = try await store.staged(40, [Stage(.share(50)), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            #expect(try await store.leaseStaged(run).isPaused)
            let record = try await store.stages(of: run)[0]
            #expect(record.decision?.verdict == .undecided)
            #expect(
                try await store.run(run)?.stateReason?.contains("63 without a rejection are needed to pass") == true)
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.leaseStaged(run).deliveries.count == 40 - record.size)

            let silent = try await store.staged(40, [Stage(.share(50)), Stage(.rest)], name: "silent")
            try await store.sendStage(of: silent) { $0.settlements(.unknown, status: 0) }
            #expect(try await store.leaseStaged(silent).isPaused)
        }
        Promise("the next stage waits for the hold to pass") { store in
            let hold = Duration.seconds(900)
            let run = try await store.staged(300, [Stage(.share(50), hold: hold, toleratePercent: 20), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            let held = try await store.leaseStaged(run)
            #expect(held.deliveries.isEmpty && held.nextDue == noon + hold && !held.isPaused)
            #expect(try await store.leaseStaged(run, now: noon + hold - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await store.leaseStaged(run, now: noon + hold).deliveries.count > 100)
        }
        Promise("a stage that needs approval begins with it, and a resume is not one") { store in
            let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest, needsApproval: true)]
            let run = try await store.staged(300, stages)
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            #expect(try await store.leaseStaged(run).isPaused)
            let waiting = try #require(try await store.run(run))
            #expect(waiting.halt == .approval && waiting.state == .paused)
            #expect(waiting.stateReason?.contains("fanfare approve \(run) --stage 2") == true)
            await #expect(throws: StoreError.awaitsApproval(run: run)) {
                try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            }
            for other in [0, 2] {
                #expect(try await store.approveStage(of: run, stage: other, by: "eve", now: noon) == false)
            }
            #expect(try await store.run(run)?.halt == .approval)
            #expect(try await store.approveStage(of: run, stage: 1, by: "eve", now: noon))
            #expect(try await store.approveStage(of: run, stage: 1, by: "eve", now: noon) == false)
            #expect(try await store.leaseStaged(run).deliveries.count > 100)
            #expect(try await store.stages(of: run)[1].approvedBy == "eve")
            #expect(try await store.events(run: run).contains { $0.kind == "run_stage" && $0.actor.name == "eve" })
        }
        Promise("seeds get it first, in the audience or not") { store in
            _ = try await store.importDevices(
                try (0..<50).map { number in try record(number) { $0.country = number < 45 ? "DE" : "FR" } }, now: noon)
            let seeds = AudienceExpression.comparison(.country, .equal, .text("FR"))
            let audience = AudienceExpression.comparison(.country, .equal, .text("DE"))
            let plan = try definition(audience: audience) { $0.stages = [Stage(.seeds(seeds)), Stage(.rest)] }
            let reach = try await store.reach(of: plan.campaign, budget: nil, waves: nil, now: noon)
            #expect(reach.total == 50 && reach.stages.map(\.count) == [5, 45])
            let run = try await store.startRun(plan)
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            #expect(try await store.stages(of: run)[0].answers == StageAnswers(answered: 5))
            #expect(try await store.leaseStaged(run).deliveries.count == 45)
        }
        Promise("a stage in which nobody is stops the run") { store in
            let nobody = AudienceExpression.comparison(.country, .equal, .text("FR"))
            let run = try await store.staged(30, [Stage(.seeds(nobody)), Stage(.rest)])
            #expect(try await store.leaseStaged(run).isPaused)
            #expect(try await store.stages(of: run)[0].decision?.verdict == .undecided)
        }
        Promise("the sample of a freeze that is taken up again is the one it began with") { store in
            let stages = [Stage(.share(10)), Stage(.rest)]
            let whole = try await store.staged(3_000, stages, name: "news")
            let sizes = try await store.stages(of: whole).map(\.size)
            let plan = try definition("news") { $0.stages = stages }
            let cut = try await store.createRun(plan, occurrence: "cut", now: noon, by: "test").run.id
            // The first batch is written, then whoever freezes is stopped.
            let first = Collected<Int>()
            let task = Collected<Task<Void, any Error>>()
            task.add([
                Task {
                    _ = try await store.freeze(cut, now: noon) { rows in
                        first.add([rows.audience])
                        for running in task.all { running.cancel() }
                    }
                }
            ])
            _ = await task.all[0].result
            let counts = try await store.freeze(cut, now: noon) { _ in }
            #expect(counts.audience == 3_000 && first.all.first == 2_000)
            #expect(try await store.stages(of: cut).map(\.size) == sizes)
        }
        Promise("what a sender leaves of a stage is counted when it is recovered") { store in
            let run = try await store.staged(100, [Stage(.share(50)), Stage(.rest)])
            _ = try await store.leaseStaged(run)
            let left = try await store.abandonedLeases(run)
            #expect(left.flatMap(\.deliveries).allSatisfy { $0.stage == 0 })
            try await store.recover(run, now: noon)
            let again = try await store.leaseStaged(run)
            #expect(again.deliveries.count == StageController.firstMost)
            #expect(again.deliveries.allSatisfy { $0.stage == 0 && $0.attempt == 2 })
        }
        Promise("a stage that a wrong host refused is sent again once that is put right, and judged by what is new") {
            store in
            let run = try await store.staged(60, [Stage(.share(50), toleratePercent: 90), Stage(.rest)])
            let size = try await store.stages(of: run)[0].size
            try await store.sendStage(of: run) {
                $0.settlements(.rejected, status: 400, reason: "BadDeviceToken")
            }
            try await store.halt(run, by: "a", .breaker, reason: "wrong host", now: noon)
            #expect(try await store.reopenMismatched(run: run, .production, owner: "a", now: noon) == size)
            let reopened = try await store.stages(of: run)[0]
            #expect(reopened.answers == StageAnswers() && reopened.decision == nil)
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            var sent = 0
            while sent < size {
                let lease = try await store.leaseStaged(run)
                try #require(!lease.deliveries.isEmpty && lease.deliveries.allSatisfy { $0.stage == 0 })
                sent += lease.deliveries.count
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(try await store.stages(of: run)[0].answers == StageAnswers(answered: size))
            #expect(try await store.leaseStaged(run).deliveries.count == 60 - size)
            try await store.expectSumsClose(run)
        }
        Promise(
            "a verdict that falls while somebody has paused the run is told when it goes on, and waits for a word of its own"
        ) { store in
            let run = try await store.staged(60, [Stage(.share(50)), Stage(.rest)])
            let first = try await store.leaseStaged(run)
            _ = try await store.settle(run: run, first.settlements(.rejected, status: 400), now: noon)
            let lease = try await store.leaseStaged(run)
            try await store.change(run, to: .paused, reason: nil, now: noon, by: "ray")
            _ = try await store.settle(run: run, lease.settlements(.rejected, status: 400), now: noon)
            #expect(try await store.run(run)?.pausedBy == "ray")
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.stages(of: run)[0].releasedBy == nil)
            #expect(try await store.leaseStaged(run).isPaused)
            #expect(try await store.run(run)?.halt == .stage)
            // Nor does an owner who stops for another reason take it back.
            try await store.release(
                run, by: "a", state: .paused, reason: "away", halt: .unreachable, now: noon)
            #expect(try await store.run(run)?.halt == .stage)
        }
        Promise("a run that has nothing left asks nobody about its stages") { store in
            let run = try await store.staged(5, [Stage(.seeds(.everyone)), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.unknown, status: 0) }
            #expect(try await store.stages(of: run)[0].answers == StageAnswers(answered: 0, unknown: 5))
            let last = try await store.leaseStaged(run)
            #expect(last.deliveries.isEmpty && !last.isPaused)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        }
        Promise("answers that come after the last stage has begun are counted, however many come at once") { store in
            let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest)]
            let run = try await store.staged(400, stages)
            let size = try await store.stages(of: run)[0].size
            var left: [Settlement] = []
            var sent = 0
            while sent < size {
                let lease = try await store.leaseStaged(run)
                try #require(!lease.deliveries.isEmpty)
                sent += lease.deliveries.count
                let settlements = lease.settlements(.accepted)
                // The last of it are retried, and answered when the rest is under way.
                let isLast = sent >= size
                let retried = lease.settlements(.retry(notBefore: noon), status: 503, reason: "Shutdown")
                _ = try await store.settle(run: run, isLast ? retried : settlements, now: noon)
                if isLast { left = retried }
            }
            #expect(!left.isEmpty)
            let again = try await store.leaseStaged(run)
            #expect(again.deliveries.count == left.count)
            let settlements = again.settlements(.accepted)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for settlement in settlements {
                    group.addTask { _ = try await store.settle(run: run, [settlement], now: noon) }
                }
                try await group.waitForAll()
            }
            #expect(try await store.stages(of: run)[0].answers == StageAnswers(answered: size))
            #expect(try await store.leaseStaged(run).deliveries.count == 400 - size)
        }
        Promise("what APNs was too busy to take says nothing of the run") { store in
            let run = try await store.staged(100, [Stage(.share(20), toleratePercent: 20), Stage(.rest)])
            var busy = 0
            while true {
                let lease = try await store.leaseStaged(run)
                guard !lease.deliveries.isEmpty else { break }
                busy += lease.deliveries.count
                let status = busy.isMultiple(of: 6) ? 429 : 503
                _ = try await store.settle(run: run, lease.settlements(.rejected, status: status), now: noon)
            }
            let stage = try await store.stages(of: run)[0]
            #expect(busy > 0 && stage.answers == StageAnswers(answered: 0, unknown: busy))
            #expect(stage.decision?.verdict != .halt && stage.decision?.verdict != .go)
            let reason = try await store.run(run)?.stateReason ?? ""
            #expect(reason.contains("\(busy) ended with an APNs error"), "\(reason)")
            #expect(!reason.contains("never answered"), "\(reason)")
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("a cancelled run closes its sums whatever stage it was in") { store in
            let run = try await store.staged(100, [Stage(.share(20)), Stage(.rest)])
            let lease = try await store.leaseStaged(run)
            try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "ray")
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            let counts = try await store.summary(run: run)
            #expect(counts.accepted == StageController.firstMost && counts.suppressed == 97)
            try await store.expectSumsClose(run)
        }
        Promise("a stage of a run by each device's clock waits for its waves, and the rest for the stage") { store in
            let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest)]
            let run = try await store.staged(400, stages) { record, number in
                record.timeZone = number % 2 == 0 ? "Etc/UTC" : "Etc/GMT+1"
            } run: { definition in
                var schedule = Schedule(trigger: .at("2027-01-15T08:00"))
                schedule.zone = .recipient
                schedule.unknownZone = .drop
                definition.campaign.schedule = schedule
                definition.wall = WallTime(seconds: noon.seconds)
            }
            let record = try await store.stages(of: run)[0]
            #expect(record.size > 100)
            var first = 0
            while true {
                let lease = try await store.leaseStaged(run)
                if lease.deliveries.isEmpty { break }
                if lease.deliveries.contains(where: { $0.stage == 0 }) { first += lease.deliveries.count }
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(first > 0 && first < record.size)
            let early = try await store.summary(run: run)
            #expect(early.accepted > first && early.accepted < 400)
            let later = noon + .seconds(3_600)
            while true {
                let lease = try await store.leaseStaged(run, now: later)
                if lease.deliveries.isEmpty { break }
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: later)
            }
            #expect(try await store.summary(run: run).accepted == 400)
        }
    }
}

extension DeliveryQueue where Self: RunLog & RunOwnership & DeviceRegistry {
    /// A frozen run over so many new devices.
    package func staged(
        _ devices: Int, _ stages: [Stage], name: String = "new-podcast",
        device: (inout DeviceRecord, Int) -> Void = { _, _ in }, run: (inout RunDefinition) -> Void = { _ in }
    ) async throws -> Int64 {
        _ = try await importDevices(
            try (0..<devices).map { number in try record(number) { device(&$0, number) } }, now: noon)
        var definition = try definition(name) { $0.stages = stages }
        run(&definition)
        return try await startRun(definition)
    }

    package func leaseStaged(
        _ run: Int64, now: Timestamp = noon, _ change: (inout LeaseRequest) -> Void = { _ in }
    ) async throws -> Lease {
        var request = LeaseRequest(run: run, environment: .production, limit: 1000, now: now, owner: "a")
        request.stages = 2
        change(&request)
        // A call that opens a stage may be cut short before it leases from it: the sender asks again.
        for _ in 0..<10 {
            let found = try await lease(request)
            guard found.isCutShort else { return found }
        }
        return try await lease(request)
    }

    /// Until all of the stage that is open is settled.
    package func sendStage(of run: Int64, _ settled: (Lease) -> [Settlement]) async throws {
        let size = try await stages(of: run)[0].size
        var sent = 0
        while sent < size {
            let lease = try await leaseStaged(run)
            guard !lease.deliveries.isEmpty else { return }
            sent += lease.deliveries.count
            _ = try await settle(run: run, settled(lease), now: noon)
        }
    }
}
