import Model
import Store
import Testing

/// What counts for the verdict on a stage, and what does not.
extension DeliveryQueueContract {
    /// Why a push that APNs was too busy to take is left out when its turn comes again.
    private typealias Leaving = (
        reason: SuppressionReason, pushType: PushType, limits: @Sendable (inout LeaseRequest) -> Void
    )

    private static let aMinute = Duration.seconds(60)

    private static let leavings: [Leaving] = [
        (.expired, .alert, { $0.expiry = .until(noon + aMinute) }),
        (
            .silentBudget, .background,
            {
                $0.silentBudget = Configuration.SilentBudget(limit: 1, window: .seconds(86_400))
                $0.expiry = .until(noon + .seconds(3600))
            }
        ),
    ]

    @Sendable private static func oneADay(_ request: inout LeaseRequest) {
        let cap = FrequencyCap(limit: 1, window: .seconds(86_400))
        request.caps = CapRequest(
            rule: CapRule(topic: wendercast, pushClass: FrequencyCap.usualClass, caps: [cap]),
            latest: Expiry(plannedAt: noon, after: .seconds(3600)))
    }

    @PromiseList static var stageVerdicts: [Promise] {
        Promise("refusals are held against those on their way too, which nobody has refused yet") { store in
            let run = try await store.staged(200, [Stage(.share(50)), Stage(.rest)])
            var left = try await store.leaseStaged(run).settlements(.rejected, status: 400)
            for _ in 0..<3 {
                _ = try await store.settle(run: run, [left.removeFirst()], now: noon)
                left += try await store.leaseStaged(run).settlements(.rejected, status: 400)
            }
            // All four that were answered are refused, which is enough; three are on their way.
            _ = try await store.settle(run: run, [left.removeFirst()], now: noon)
            left += try await store.leaseStaged(run).settlements(.rejected, status: 400)
            #expect(left.count == 3)
            #expect(try await store.stages(of: run)[0].answers == StageAnswers(answered: 4, failed: 4))
            #expect(try await store.stages(of: run)[0].decision == nil)
            _ = try await store.settle(run: run, [left.removeFirst()], now: noon)
            let decision = try #require(try await store.stages(of: run)[0].decision)
            #expect(decision.verdict == .halt && decision.answers.failed == 5 && decision.unanswered == 2)
            #expect(try await store.run(run)?.stateReason?.contains("2 more were in flight") == true)
            _ = try await store.settle(run: run, left, now: noon)
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("a wave that fails after the first one was let go halts the run all the same") { store in
            let run = try await store.stagedByZone(400)
            try await store.sendDue(run, now: noon) { $0.settlements(.accepted) }
            let before = try await store.stages(of: run)
            #expect(before[0].decision?.verdict == .go && before[1].openedAt != nil)
            let later = noon + .seconds(3_600)
            let lease = try await store.leaseStaged(run, now: later)
            let refused = lease.settlements(.rejected, status: 400).filter { $0.stage == 0 }
            #expect(refused.count > 50)
            _ = try await store.settle(run: run, refused, now: later)
            let halted = try await store.stages(of: run)
            #expect(halted[0].decision == before[0].decision)
            let decision = try #require(halted[0].afterGo)
            #expect(decision.verdict == .halt && decision.answers == halted[0].answers && decision.at == later)
            let stopped = try #require(try await store.run(run))
            #expect(stopped.state == .paused && stopped.halt == .stage)
            let reason = try #require(stopped.stateReason)
            #expect(reason.contains("passed: "))
            #expect(reason.contains("; later it was halted, too many pushes were rejected: "))
            #expect(reason.contains("fanfare resume \(run)"))
            #expect(try await store.leaseStaged(run, now: later).isPaused)
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
            try await store.change(run, to: .running, reason: nil, now: later, by: "ray")
            #expect(try await store.stages(of: run)[0].releasedBy == "ray")
            let rest = lease.settlements(.accepted).filter { $0.stage != 0 }
            _ = try await store.settle(run: run, rest, now: later)
            try await store.sendDue(run, now: later) { $0.settlements(.accepted) }
            let counts = try await store.summary(run: run)
            #expect(counts.accepted + counts.rejected == 400 && counts.pending == 0)
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("a verdict that falls on a later wave while somebody has paused the run waits for a word of its own") {
            store in
            let run = try await store.stagedByZone(400)
            try await store.sendDue(run, now: noon) { $0.settlements(.accepted) }
            let later = noon + .seconds(3_600)
            let lease = try await store.leaseStaged(run, now: later)
            try await store.change(run, to: .paused, reason: nil, now: later, by: "ray")
            let refused = lease.settlements(.rejected, status: 400).filter { $0.stage == 0 }
            _ = try await store.settle(run: run, refused, now: later)
            #expect(try await store.run(run)?.pausedBy == "ray")
            try await store.change(run, to: .running, reason: nil, now: later, by: "ray")
            #expect(try await store.leaseStaged(run, now: later).isPaused)
            #expect(try await store.run(run)?.halt == .stage)
        }
        Promise.each(
            leavings, { "what was sent before and is left out then counts as unknown: \($0.reason.rawValue)" }
        ) { store, row in
            let run = try await store.staged(
                140, [Stage(.share(50)), Stage(.rest)], run: { $0.campaign.pushType = row.pushType })
            let size = try await store.stages(of: run)[0].size
            let later = noon + aMinute
            var (sent, left) = (0, 0)
            while sent < size {
                let lease = try await store.leaseStaged(run, row.limits)
                try #require(!lease.deliveries.isEmpty)
                sent += lease.deliveries.count
                if sent >= size { left = lease.deliveries.count }
                let verdict = sent < size ? Settlement.Verdict.accepted : .retry(notBefore: later)
                _ = try await store.settle(
                    run: run, lease.settlements(verdict, status: sent < size ? 200 : 503), now: noon)
            }
            // More were accepted than it takes to be sure.
            #expect(size - left >= 40 && left > 0)
            while try await store.run(run)?.state == .running {
                #expect(try await store.leaseStaged(run, now: later, row.limits).deliveries.isEmpty)
            }
            let record = try await store.stages(of: run)[0]
            #expect(record.answers == StageAnswers(answered: size - left, unknown: left))
            #expect(record.decision?.verdict == .undecided && record.decision?.leftOut == nil)
            #expect(try await store.run(run)?.stateReason?.contains("\(left) were without a response") == true)
            #expect(try await store.report(run).suppressed.first?.reason == row.reason.rawValue)
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("what a sender gives up after an attempt counts as unknown") { store in
            let run = try await store.staged(140, [Stage(.share(50), toleratePercent: 50), Stage(.rest)])
            let lease = try await store.leaseStaged(run)
            _ = try await store.settle(run: run, lease.settlements(.suppressed(.expired), status: 403), now: noon)
            let answers = try await store.stages(of: run)[0].answers
            #expect(answers == StageAnswers(answered: 0, unknown: StageController.firstMost))
            #expect(try await store.verify(budgets: [:]).faultCount == 0)
        }
        Promise("seeds that were all left out are named with the reason, and wait for a person") { store in
            let seeds = AudienceExpression.comparison(.country, .equal, .text("FR"))
            let run = try await store.staged(30, [Stage(.seeds(seeds)), Stage(.rest)]) { record, number in
                record.country = number < 3 ? "FR" : "DE"
            }
            let first = try await store.startRun(try definition("first", audience: seeds))
            let sent = try await store.leaseStaged(first) {
                $0.stages = 0
                oneADay(&$0)
            }
            #expect(sent.deliveries.count == 3)
            _ = try await store.settle(run: first, sent.settlements(.accepted), now: noon)
            while try await store.run(run)?.state == .running {
                #expect(try await store.leaseStaged(run, oneADay).deliveries.isEmpty)
            }
            let decision = try #require(try await store.stages(of: run)[0].decision)
            #expect(decision.verdict == .undecided && decision.leftOut == ["frequency_cap": 3])
            let halted = try #require(try await store.run(run))
            #expect(halted.halt == .stage)
            #expect(
                halted.stateReason?.hasPrefix(
                    "stage 1 (seeds) did not pass: no responses, 3 of 3 seeds were left out: frequency_cap"
                )
                    == true)
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            #expect(try await store.leaseStaged(run).deliveries.count == 27)
        }
        Promise("no clock that is set forward shortens a hold") { store in
            func clocks(_ time: Duration, set: Duration = .zero) -> @Sendable (inout LeaseRequest) -> Void {
                { $0.clocks = ClockReading(wall: noon + time + set, uptime: .seconds(1000) + time, boot: "b") }
            }
            let (hold, set) = (Duration.seconds(900), Duration.seconds(3600))
            let run = try await store.staged(300, [Stage(.share(50), hold: hold, toleratePercent: 20), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            #expect(try await store.leaseStaged(run, clocks(.zero)).nextDue == noon + hold)
            let held = try await store.leaseStaged(run, now: noon + aMinute + set, clocks(aMinute, set: set))
            #expect(held.deliveries.isEmpty && held.nextDue == noon + set + hold)
            let early = noon + set + hold - .milliseconds(1)
            let last = clocks(hold - .milliseconds(1), set: set)
            #expect(try await store.leaseStaged(run, now: early, last).deliveries.isEmpty)
            let over = try await store.leaseStaged(run, now: noon + set + hold, clocks(hold, set: set))
            #expect(over.deliveries.count > 100)
        }
        Promise.each([0, 30], { "a clock that was ahead for a while prolongs no hold that began \($0) s after noon" }) {
            store, decided in
            let (hold, set) = (Duration.seconds(900), Duration.seconds(45))
            func reading(_ seconds: Int, set: Duration = .zero) -> ClockReading {
                ClockReading(wall: noon + .seconds(seconds) + set, uptime: .seconds(1000 + seconds), boot: "b")
            }
            func lease(_ run: Int64, _ seconds: Int, set: Duration = .zero) async throws -> Lease {
                let clocks = reading(seconds, set: set)
                return try await store.leaseStaged(run, now: clocks.wall) { $0.clocks = clocks }
            }
            let run = try await store.staged(300, [Stage(.share(50), hold: hold, toleratePercent: 20), Stage(.rest)])
            try await store.sendStage(of: run) { $0.settlements(.accepted) }
            let begins = noon + .seconds(decided)
            if decided == 0 { _ = try await lease(run, 0) } else { _ = try await store.noteClocks(reading(0), by: "a") }
            #expect(try await lease(run, 30, set: set).nextDue == begins + set + hold)
            #expect(try await lease(run, 40).nextDue == begins + hold)
            let found = try #require(try await store.run(run))
            let held = StageController.heldUntil(found, try await store.stages(of: run))
            #expect(held == begins + hold)
            #expect(try await lease(run, decided + 899).deliveries.isEmpty)
            #expect(try await lease(run, decided + 900).deliveries.count > 100)
        }
        Promise("the most gone of the last five finished runs are put up with, not those of the last one") { store in
            _ = try await store.importDevices(try (0..<200).map { try record($0) }, now: noon)
            for (index, gone) in [120, 20, 80, 0, 10, 0].enumerated() {
                let run = try await store.startRun(try definition(), occurrence: "\(index)")
                let lease = try await store.lease(run)
                let settlements = lease.settlements(.accepted)
                let refused = lease.settlements(.rejected, status: 410, reason: "Unregistered")
                _ = try await store.settle(run: run, Array(refused[..<gone] + settlements[gone...]), now: noon)
                try await store.summarizeOutcomes(run: run)
                try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            }
            let run = try await store.startRun(try definition { $0.stages = [Stage(.share(50)), Stage(.rest)] })
            _ = try await store.leaseStaged(run)
            #expect(try await store.stages(of: run)[0].goneTolerated == 0.8)
        }
        Promise("a campaign without a history tolerates twice the most gone of its app's other campaigns") { store in
            _ = try await store.importDevices(try (0..<200).map { try record($0) }, now: noon)
            let app = "com.example.other"
            _ = try await store.importDevices(
                try (200..<400).map { try record($0, topic: app) }, now: noon)
            let other = try definition("other") { $0.topic = app }
            for (index, definition) in [try definition("weekly"), other, try definition("daily")].enumerated() {
                let run = try await store.startRun(definition, occurrence: "\(index)")
                let lease = try await store.lease(run)
                let refused = lease.settlements(.rejected, status: 410, reason: "Unregistered")
                let gone = [20, 60, 10][index]
                let settlements = Array(refused[..<gone] + lease.settlements(.accepted)[gone...])
                _ = try await store.settle(run: run, settlements, now: noon)
                try await store.summarizeOutcomes(run: run)
                try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            }
            let stages = [Stage(.share(50)), Stage(.rest)]
            let run = try await store.startRun(try definition("first") { $0.stages = stages })
            _ = try await store.leaseStaged(run)
            #expect(try await store.stages(of: run)[0].goneTolerated == 0.2)
        }
    }

    @PromiseList static var seeds: [Promise] {
        Promise.each(
            [(100, true), (120, true), (119, false), (110, false)] as [(Int, Bool)],
            { "60 seeds are \($1 ? "few enough" : "too many") of \($0) devices to plan and to freeze" }
        ) { store, row in
            let (devices, isAllowed) = row
            let seeds = 60
            _ = try await store.importDevices(
                try (0..<devices).map { number in try record(number) { $0.country = number < seeds ? "FR" : "DE" } },
                now: noon)
            let expression = AudienceExpression.comparison(.country, .equal, .text("FR"))
            let plan = try definition { $0.stages = [Stage(.seeds(expression)), Stage(.rest)] }
            let run = try await store.createRun(plan, occurrence: "once", now: noon, by: "test").run.id
            if isAllowed {
                #expect(try await store.reach(of: plan.campaign, budget: nil, waves: nil, now: noon).total == devices)
                #expect(try await store.freeze(run, now: noon) { _ in }.audience == devices)
                return
            }
            let error = StoreError.tooManySeeds(stage: 1, devices: seeds, audience: devices)
            #expect(error.description.contains("selects 60 of the \(devices) devices"))
            await #expect(throws: error) {
                _ = try await store.reach(of: plan.campaign, budget: nil, waves: nil, now: noon)
            }
            await #expect(throws: error) { _ = try await store.freeze(run, now: noon) { _ in } }
            #expect(try await store.run(run)?.counts.audience == 0)
        }
        Promise("more seeds than anybody knows are refused, however many devices there are") { store in
            let count = Stage.seedsMax + 1
            _ = try await store.importDevices(
                try (0..<count * 3).map { number in try record(number) { $0.country = number < count ? "FR" : "DE" } },
                now: noon)
            let seeds = AudienceExpression.comparison(.country, .equal, .text("FR"))
            let plan = try definition { $0.stages = [Stage(.share(10)), Stage(.seeds(seeds)), Stage(.rest)] }
            let error = StoreError.tooManySeeds(stage: 2, devices: count, audience: nil)
            #expect(error.description.contains("names more than 1,000 devices"))
            await #expect(throws: error) {
                _ = try await store.reach(of: plan.campaign, budget: nil, waves: nil, now: noon)
            }
        }
    }
}

extension DeliveryQueue where Self: RunLog & RunOwnership & DeviceRegistry {
    /// Half of the devices are an hour behind UTC, and it is eight o'clock in the first zone at noon.
    fileprivate func stagedByZone(_ devices: Int) async throws -> Int64 {
        let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest)]
        return try await staged(devices, stages) { record, number in
            record.timeZone = number % 2 == 0 ? "Etc/UTC" : "Etc/GMT+1"
        } run: { definition in
            var schedule = Schedule(trigger: .at("2027-01-15T08:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .drop
            definition.campaign.schedule = schedule
            definition.wall = WallTime(seconds: noon.seconds)
        }
    }

    /// All that is due at one moment.
    fileprivate func sendDue(_ run: Int64, now: Timestamp, _ settled: (Lease) -> [Settlement]) async throws {
        while true {
            let lease = try await leaseStaged(run, now: now)
            guard !lease.deliveries.isEmpty else { return }
            _ = try await settle(run: run, settled(lease), now: now)
        }
    }
}
