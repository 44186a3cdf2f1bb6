import Model
import Store
import Testing

/// A stage that decides which variant the rest gets, and a stage whose opens are compared with earlier runs.
extension DeliveryQueueContract {
    private static let hold = Duration.seconds(1800)
    private static let after = noon + .seconds(1800)

    private static func deciding(
        _ undecided: VariantRule.Undecided = .wait, by measure: VariantRule.Measure = .opens
    ) -> [Stage] {
        let rule = VariantRule(by: measure, undecided: undecided)
        return [Stage(.share(50), hold: hold, toleratePercent: 50, decides: rule), Stage(.rest)]
    }

    /// A run whose first stage is sent, with this many opens of each variant.
    private static func compared(
        _ store: any AllRoles, _ devices: Int = 400, _ stages: [Stage] = deciding(), opens: [Int],
        _ change: (inout Campaign) -> Void = { _ in }
    ) async throws -> Int64 {
        let run = try await store.staged(devices, stages) { _, _ in
        } run: { definition in
            definition.campaign.feedback = CampaignFeedback()
            definition.campaign.variants = ["long", "short"].map {
                Campaign.Variant(name: $0, weight: 1, template: "new-podcast")
            }
            change(&definition.campaign)
        }
        let sent = Collected<LeasedDelivery>()
        try await store.sendStage(of: run) { lease in
            sent.add(lease.deliveries)
            return lease.settlements(.accepted)
        }
        for (variant, count) in opens.enumerated() {
            let devices = sent.all.filter { $0.variant == variant }.map(\.device)
            try #require(devices.count >= count)
            try await report(store, run, Array(devices.prefix(count)))
        }
        // The hold begins when a sender finds nothing more to send.
        #expect(try await store.leaseStaged(run) { $0.decidingStage = 0 }.deliveries.isEmpty)
        return run
    }

    private static func report(
        _ store: any AllRoles, _ run: Int64, _ devices: [Int64], at: Timestamp = noon + .seconds(60)
    ) async throws {
        let events = devices.map { device in
            FeedbackEvent(
                source: .push(run: run, device: device), kind: .opened, id: (high: 0, low: 1), at: at, receivedAt: at)
        }
        #expect(try await store.recordFeedback(events).allSatisfy { $0 == .recorded })
    }

    private static func next(_ store: any AllRoles, _ run: Int64, owner: String = "a") async throws -> Lease {
        try await store.leaseStaged(run, now: after) {
            $0.decidingStage = 0
            $0.owner = owner
        }
    }

    private static func faults(_ store: any AllRoles) async throws -> [String] {
        try await store.verify(budgets: [:]).checks.flatMap { $0.faults.map(\.what) }
    }

    @PromiseList static var stageOpens: [Promise] {
        Promise("the rest gets the variant that was opened more, and every row and count says so") { store in
            let run = try await compared(store, opens: [5, 40])
            let early = try await store.leaseStaged(run) { $0.decidingStage = 0 }
            #expect(early.deliveries.isEmpty && early.nextDue == after)
            #expect(try await store.stages(of: run)[0].decision?.variants == nil)
            let rest = try await next(store, run)
            let record = try await store.stages(of: run)[0]
            let decided = try #require(record.decision?.variants)
            #expect(decided.variant == 1 && decided.cause == .winner && decided.counts.map(\.reached) == [5, 40])
            #expect(decided.counts.map(\.accepted).reduce(0, +) == record.size && decided.at == after)
            #expect(rest.deliveries.count == 400 - record.size)
            #expect(rest.deliveries.allSatisfy { $0.variant == 1 && $0.stage == nil })
            // A sender that dies now leaves rows that say what was sent.
            try await store.recover(run, now: after)
            let again = try await next(store, run)
            #expect(again.deliveries.count == 400 - record.size && again.deliveries.allSatisfy { $0.variant == 1 })
            _ = try await store.settle(run: run, again.settlements(.accepted), now: after)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: after)
            let report = try await store.report(run)
            #expect(
                report.byVariant.map(\.counts.accepted) == [
                    decided.counts[0].accepted, 400 - decided.counts[0].accepted,
                ])
            #expect(
                try await store.events(run: run).contains {
                    $0.kind == "run_stage" && $0.detail.contains("short 40 of")
                        && $0.detail.contains("the rest gets short")
                })
            #expect(try await faults(store) == [])
        }
        Promise("opens that come after the decision do not change it, whatever sender goes on") { store in
            let run = try await compared(store, opens: [40, 5])
            var request = LeaseRequest(run: run, environment: .production, limit: 50, now: after, owner: "a")
            (request.stages, request.decidingStage) = (2, 0)
            var first = try await store.lease(request)
            while first.isCutShort { first = try await store.lease(request) }
            #expect(first.deliveries.count == 50 && first.deliveries.allSatisfy { $0.variant == 0 })
            // The first sender is killed, and the other variant is opened by all its devices.
            let other = try await store.outcomeRows(of: run).filter { $0.variant == 1 && $0.state == .accepted }
            try await report(store, run, Array(other.dropFirst(5)).map(\.device), at: after)
            try await store.recover(run, now: after)
            try await store.release(run, by: "a", state: .running, reason: nil, now: after)
            #expect(try await store.claim(run, by: "b", now: after) == .claimed)
            let rest = try await next(store, run, owner: "b")
            #expect(rest.deliveries.count > 50 && rest.deliveries.allSatisfy { $0.variant == 0 })
            #expect(try await store.stages(of: run)[0].decision?.variants?.counts.map(\.reached) == [40, 5])
            _ = try await store.settle(run: run, rest.settlements(.accepted), now: after)
            #expect(try await faults(store) == [])
        }
        Promise("a comparison without a winner waits for a person, who chooses the variant") { store in
            let run = try await compared(store, opens: [10, 12])
            #expect(try await next(store, run).isPaused)
            let waiting = try #require(try await store.run(run))
            #expect(waiting.state == .paused && waiting.halt == .approval)
            #expect(
                waiting.stateReason?.contains("`fanfare approve \(run) --variant NAME` sends long or short") == true)
            await #expect(throws: StoreError.awaitsApproval(run: run)) {
                try await store.change(run, to: .running, reason: nil, now: after, by: "ray")
            }
            for (stage, variant) in [(1, nil), (1, 2), (0, 1)] as [(Int, Int?)] {
                let isApproved = try await store.approveStage(
                    of: run, stage: stage, variant: variant, by: "eve", now: after)
                #expect(!isApproved)
            }
            #expect(try await store.approveStage(of: run, stage: 1, variant: 1, by: "eve", now: after))
            #expect(try await next(store, run).deliveries.allSatisfy { $0.variant == 1 })
            let decided = try #require(try await store.stages(of: run)[0].decision?.variants)
            #expect(decided.variant == 1 && decided.cause == .person && decided.person == "eve")
            #expect(try await store.events(run: run).contains { $0.detail.contains("eve chose short") })
            #expect(try await faults(store) == [])
        }
        Promise("a comparison without a winner takes the first variant if the campaign says so") { store in
            let run = try await compared(store, 400, deciding(.first), opens: [10, 12])
            let rest = try await next(store, run)
            #expect(!rest.deliveries.isEmpty && rest.deliveries.allSatisfy { $0.variant == 0 })
            #expect(try await store.stages(of: run)[0].decision?.variants?.cause == .first)
        }
        Promise("a person who resumes a stage in spite of its verdict still gets the comparison after the time") {
            store in
            let run = try await compared(
                store, 100, [Stage(.share(50), hold: hold, decides: VariantRule(undecided: .first)), Stage(.rest)],
                opens: [0, 0])
            #expect(try await store.leaseStaged(run).isPaused)
            try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            let held = try await store.leaseStaged(run) { $0.decidingStage = 0 }
            #expect(held.deliveries.isEmpty && held.nextDue == after)
            #expect(try await next(store, run).deliveries.allSatisfy { $0.variant == 0 })
            #expect(try await faults(store) == [])
        }
        Promise("conversions decide, too, if they come after the push") { store in
            let run = try await compared(store, 400, deciding(.wait, by: .conversion), opens: []) {
                $0.conversion = Conversion(event: "played", within: .seconds(3600))
            }
            let rows = try await store.outcomeRows(of: run).filter { $0.state == .accepted }
            let events = rows.enumerated().compactMap { number, row -> FeedbackEvent? in
                // All of the first variant did it before the push, and a third of the second afterwards.
                let isFirst = row.variant == 0
                guard isFirst || number % 3 == 0 else { return nil }
                let at = noon + .seconds(isFirst ? -5 : 5)
                return FeedbackEvent(
                    source: .push(run: run, device: row.device), kind: .converted, name: "played",
                    id: (high: 1, low: Int64(number)), at: at, receivedAt: at)
            }
            _ = try await store.recordFeedback(events)
            #expect(try await next(store, run).deliveries.allSatisfy { $0.variant == 1 })
            #expect(try await store.stages(of: run)[0].decision?.variants?.counts[0].reached == 0)
        }
        Promise("verify finds a push of the rest with another variant") { store in
            let run = try await compared(store, opens: [5, 40])
            // A sender that does not know that a stage decides.
            let rest = try await store.leaseStaged(run, now: after)
            #expect(!rest.deliveries.isEmpty && rest.deliveries.allSatisfy { $0.variant == nil })
            _ = try await store.settle(run: run, rest.settlements(.accepted), now: after)
            #expect(try await faults(store).contains { $0.contains("of the rest went out with another variant") })
        }
    }

    private static func history(
        _ store: any AllRoles, _ name: String, devices: Int = 400, opened: Int, late: Int = 0, doubtful: Int = 0
    ) async throws {
        let run = try await store.startRun(
            try definition(name) { $0.feedback = CampaignFeedback() }, occurrence: "before",
            now: noon - .seconds(86_400))
        let lease = try await store.lease(run, limit: devices, now: noon - .seconds(86_400))
        let sent =
            lease.settlements(.accepted).dropLast(doubtful)
            + lease.settlements(.unknown, status: 0, reason: "timeout").suffix(doubtful)
        _ = try await store.settle(run: run, Array(sent), now: noon - .seconds(86_400))
        let devices = lease.deliveries.map(\.device)
        try await report(store, run, Array(devices.prefix(opened)), at: noon - .seconds(86_300))
        try await report(store, run, Array(devices.suffix(doubtful)), at: noon - .seconds(86_300))
        // After the time that is compared.
        try await report(store, run, Array(devices.suffix(late)), at: noon - .seconds(80_000))
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon - .seconds(86_400))
    }

    /// A run whose first stage must be opened half as often as usual, after this campaign's and another one's run.
    private static func canary(
        _ store: any AllRoles, own: Int?, other: Int?, opened: Int
    ) async throws -> Int64 {
        _ = try await store.importDevices(try (0..<400).map { try record($0) }, now: noon)
        if let own { try await history(store, "new-podcast", opened: own, late: 100) }
        if let other { try await history(store, "news", opened: other) }
        let stages = [
            Stage(.share(50), hold: hold, toleratePercent: 50, opensAtLeastPercent: 50), Stage(.rest),
        ]
        let run = try await store.startRun(
            try definition {
                $0.stages = stages
                $0.feedback = CampaignFeedback()
            })
        let sent = Collected<Int64>()
        try await store.sendStage(of: run) { lease in
            sent.add(lease.deliveries.map(\.device))
            return lease.settlements(.accepted)
        }
        try await report(store, run, Array(sent.all.prefix(opened)))
        #expect(try await store.leaseStaged(run).deliveries.isEmpty)
        return run
    }

    @PromiseList static var canaries: [Promise] {
        Promise("a stage that far fewer open than usual halts the run, with the counts that show it") { store in
            let run = try await canary(store, own: 120, other: nil, opened: 5)
            #expect(try await store.leaseStaged(run).nextDue == after)
            #expect(try await store.leaseStaged(run, now: after).isPaused)
            let record = try await store.stages(of: run)[0]
            let opens = try #require(record.afterGo?.opens)
            #expect(opens.opened == 5 && opens.accepted == record.size && opens.minutes == 30)
            #expect(opens.earlier.map(\.opened) == [120] && opens.earlier.map(\.accepted) == [400] && !opens.isOfApp)
            let halted = try #require(try await store.run(run))
            #expect(halted.halt == .stage && halted.stateReason?.contains("too few devices opened it: 5 of") == true)
            #expect(try await faults(store) == [])
            try await store.change(run, to: .running, reason: nil, now: after, by: "ray")
            #expect(try await store.leaseStaged(run, now: after).deliveries.count == 400 - record.size)
            #expect(try await faults(store) == [])
        }
        Promise("a stage that is opened as usual passes, and its opens are on record") { store in
            let run = try await canary(store, own: 120, other: 400, opened: 50)
            let rest = try await store.leaseStaged(run, now: after)
            #expect(!rest.deliveries.isEmpty)
            let opens = try #require(try await store.stages(of: run)[0].decision?.opens)
            #expect(opens.opened == 50 && opens.usual == 0.3)
            #expect(
                try await store.events(run: run).contains {
                    $0.detail.contains("30 % is usual (1 run of the campaign)")
                })
            #expect(try await faults(store) == [])
        }
        Promise("what is usual are the opens of accepted pushes, not those of pushes whose outcome is unknown") {
            store in
            _ = try await store.importDevices(try (0..<400).map { try record($0) }, now: noon)
            try await history(store, "new-podcast", opened: 75, doubtful: 150)
            let run = try await canary(store, own: nil, other: nil, opened: 50)
            #expect(try await !store.leaseStaged(run, now: after).deliveries.isEmpty)
            let opens = try #require(try await store.stages(of: run)[0].decision?.opens)
            #expect(opens.earlier.map(\.opened) == [75] && opens.earlier.map(\.accepted) == [250])
        }
        Promise("a campaign without history is compared with the app's other campaigns, and else not at all") { store in
            let run = try await canary(store, own: nil, other: 200, opened: 5)
            #expect(try await store.leaseStaged(run, now: after).isPaused)
            #expect(try await store.stages(of: run)[0].afterGo?.opens?.isOfApp == true)
        }
        Promise("without any run with feedback, the stage passes and says that nothing was compared") { store in
            let run = try await canary(store, own: nil, other: nil, opened: 0)
            #expect(try await !store.leaseStaged(run, now: after).deliveries.isEmpty)
            let record = try await store.stages(of: run)[0]
            #expect(record.decision?.opens?.usual == nil && record.decision?.opens != nil)
            #expect(
                try await store.events(run: run).contains { $0.detail.contains("no earlier run tells what is usual") })
            #expect(try await faults(store) == [])
        }
    }
}

extension OutcomeReader {
    fileprivate func outcomeRows(of run: Int64) async throws -> [OutcomeRow] {
        let rows = Collected<OutcomeRow>()
        _ = try await outcomes(run: run) { rows.add($0) }
        return rows.all
    }
}
