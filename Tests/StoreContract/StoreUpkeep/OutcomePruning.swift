import Model
package import Store
import Testing

extension StoreUpkeepContract {
    @PromiseList static var outcomePruning: [Promise] {
        Promise("the report of a finished run is the same from its summary as from its rows") { store in
            let run = try await Self.finishedRun(in: store)
            let counted = try await store.report(run)
            #expect(try await store.keptReport(run) == nil)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.report(run) == counted)
            #expect(try await store.keptReport(run) == counted)
            #expect(counted.rejected.count == 1 && counted.byLocale.count == 2 && counted.byEnvironment.count == 2)
            try await store.expectSumsClose(run)
        }
        Promise("a run that still has something to do gets no summary") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            try await store.summarizeOutcomes(run: run)
            let lease = try await store.lease(run)
            try await store.summarizeOutcomes(run: run)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            // A summary of before would say pending.
            #expect(try await store.report(run).counts.accepted == 4)
        }
        Promise("a cancelled run gets its summary when its end is made, not while a sender still has it") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 2)
            try await store.change(run, to: .cancelled, reason: "wrong link", now: noon, by: "amy")
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            // Nothing is in flight, and two still wait.
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.keptReport(run) == nil)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            try await store.summarizeOutcomes(run: run)
            let kept = try #require(try await store.keptReport(run)).counts
            #expect(kept.accepted == 2 && kept.suppressed == 2)
            try await store.expectSumsClose(run)
        }
        Promise("rejections that are taken back take the summary back as well") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let refused = try await store.lease(run).settlements(.rejected, status: 400, reason: "BadDeviceToken")
            _ = try await store.settle(run: run, refused, now: noon)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.keptReport(run) != nil)
            #expect(try await store.reopenMismatched(run: run, .production, owner: "a", now: noon) == 2)
            #expect(try await store.keptReport(run) == nil)
            try await store.expectSumsClose(run)
            _ = try await store.settle(run: run, try await store.lease(run).settlements(.accepted), now: noon)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.keptReport(run)?.counts.accepted == 2)
            try await store.expectSumsClose(run)
        }
        Promise("pruned outcomes leave the report and closed sums") { store in
            let run = try await Self.finishedRun(in: store)
            let before = try await store.report(run)
            #expect(try await store.check(run).prunedAt == nil)
            let counts = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(60), dryRun: false, now: noon + .seconds(120))
            #expect(counts.runs == 1 && counts.deliveries == before.counts.audience && counts.kept == 0)
            #expect(try await store.report(run) == before)
            try await store.expectSumsClose(run)
            #expect(try await store.verify(budgets: [:]).checks.allSatisfy { $0.faults.isEmpty })
            #expect(try await store.history(ofDevice: 1, limit: 10).isEmpty)
            let entry = try #require(try await store.history(ofDevice: 1)?.entries.last)
            #expect(entry.delivery == nil && entry.prunedAt == noon + .seconds(120))
            #expect(try await store.check(run).prunedAt == noon + .seconds(120))
            await #expect(throws: StoreError.outcomesPruned(run: run, at: noon + .seconds(120))) {
                _ = try await store.outcomes(run: run) { _ in }
            }
            let again = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            #expect(again == OutcomePruneCounts())
        }
        Promise("what may have arrived is counted from rows, from a summary and after pruning") { store in
            let run = try await Self.doubtfulRun(in: store)
            let counted = try await store.report(run)
            #expect(counted.mayHaveArrived == 2 && counted.suppressedAfterRequest == 1)
            #expect(counted.possibleDuplicates == 1 && counted.counts.unknown == 1)
            let found = Collected<OutcomeRow>()
            _ = try await store.outcomes(run: run) { found.add($0) }
            #expect(found.all.map(\.doubts) == [1, 1, 1, 1, 0])
            let page = try await store.deliveries(of: run, DeliveryFilter(), after: 0, limit: 9)
            #expect(page.entries.map(\.outcome) == found.all)
            #expect(try await store.history(ofDevice: 3, limit: 1).map(\.outcome.doubts) == [1])
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.report(run) == counted)
            try await store.expectSumsClose(run)
            _ = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(60), dryRun: false, now: noon + .seconds(120))
            #expect(try await store.report(run) == counted)
            try await store.expectSumsClose(run)
        }
        Promise("a dry run, a younger run and one that goes on lose nothing") { store in
            let run = try await Self.finishedRun(in: store)
            _ = try await store.startRun(try definition("other"))
            let dry = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: true, now: noon)
            #expect(dry.runs == 1)
            let young = try await store.pruneOutcomes(finishedBefore: noon, dryRun: false, now: noon)
            #expect(young.runs == 0)
            #expect(try await store.outcomes(run: run) { _ in } == dry.deliveries)
        }
        Promise("a cancelled run is pruned as well") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 1)
            try await store.release(run, by: "a", state: .cancelled, reason: nil, now: noon)
            let before = try await store.report(run)
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(1), dryRun: false, now: noon)
            #expect(try await store.report(run) == before)
            #expect(before.counts.suppressed == 3 && before.counts.unknown == 1)
        }
        Promise("shrinking gives the space of pruned outcomes back") { store in
            _ = try await Self.finishedRun(in: store, devices: 20_000)
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            let pruned = try await store.size()
            try await store.shrink()
            let small = try await store.size()
            #expect(small.freeBytes == 0 && small.bytes <= pruned.bytes - pruned.freeBytes)
        }
    }

    /// The answers to devices 1 to 4 are lost. Then 1 is accepted, 2 rejected, 3 suppressed and 4 unknown. Device 5 is
    /// rejected at its first attempt.
    private static func doubtfulRun(in store: any AllRoles) async throws -> Int64 {
        _ = try await store.importDevices(try (1...5).map { try record($0) }, now: noon)
        let run = try await store.startRun(try definition())
        _ = try await store.lease(run, limit: 4)
        #expect(try await store.recover(run, now: noon).resent == 4)
        var settlements = try await store.lease(run).settlements(.rejected, status: 413, reason: "PayloadTooLarge")
        for place in settlements.indices {
            switch settlements[place].device {
            case 1: (settlements[place].verdict, settlements[place].status) = (.accepted, 200)
            case 3: (settlements[place].verdict, settlements[place].status) = (.suppressed(.expired), 0)
            case 4: (settlements[place].verdict, settlements[place].status) = (.unknown, 0)
            default: break
            }
            if settlements[place].device == 1 { settlements[place].reason = nil }
        }
        _ = try await store.settle(run: run, settlements, now: noon)
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        return run
    }

    /// Two locales, both environments, some rejected.
    package static func finishedRun(in store: any AllRoles, devices: Int = 30) async throws -> Int64 {
        let records = try (1...devices).map { try record($0, environment: $0 > 2 ? .production : .sandbox) }
        _ = try await store.importDevices(records, now: noon)
        let run = try await store.startRun(try definition())
        for environment in PushEnvironment.allCases {
            let lease = try await store.lease(run, limit: devices, environment: environment)
            var settlements = lease.settlements(.accepted)
            for place in settlements.indices { settlements[place].localeIndex = place % 2 }
            for place in settlements.indices.prefix(1) {
                (settlements[place].verdict, settlements[place].status) = (.rejected, 400)
                settlements[place].reason = "BadDeviceToken"
            }
            _ = try await store.settle(run: run, settlements, now: noon)
        }
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        return run
    }
}
