import Model
import Store
import TestSupport
import Testing

/// Plain acceptances are recorded many at once: it must look as if each had been recorded alone.
extension DeliveryQueueContract {
    @PromiseList static var settlingTogether: [Promise] {
        Promise("what lies between the accepted ones stays in flight") { store in
            try await importDevices(into: store)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let even = lease.settlements(.accepted).filter { $0.device.isMultiple(of: 2) }
            let counts = try await store.settle(run: run, even, now: noon)
            #expect(counts.accepted == even.count && counts.leased == lease.deliveries.count - even.count)
            _ = try await store.outcomes(run: run) { rows in
                for row in rows { #expect((row.state == .accepted) == (even.contains { $0.device == row.device })) }
            }
            try await store.expectSumsClose(run)
        }
        Promise("outcomes of which some are known already count only as far as they are new") { store in
            try await importDevices(into: store)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let all = lease.settlements(.accepted)
            _ = try await store.settle(run: run, Array(lease.settlements(.rejected, status: 400)[..<40]), now: noon)
            let counts = try await store.settle(run: run, all, now: noon)
            #expect(counts.rejected == 40 && counts.accepted == all.count - 40 && counts.leased == 0)
            try await store.expectSumsClose(run)
        }
        Promise.each(
            Nightly.rows([1, 2, 3], atNight: [4, 5, 6, 7, 8] as [UInt64]),
            { "outcomes recorded together are the same as recorded one by one: \($0)" },
            opening: { stores, seed in
                let together = try await history(on: try await stores.another().open(), seed: seed) {
                    store, run, settlements in
                    _ = try await store.settle(run: run, settlements, now: noon)
                }
                let alone = try await history(on: try await stores.another().open(), seed: seed) {
                    store, run, settlements in
                    for settlement in settlements { _ = try await store.settle(run: run, [settlement], now: noon) }
                }
                #expect(together.outcomes == alone.outcomes)
                #expect(together.byLocale == alone.byLocale)
                #expect(together.counts == alone.counts)
                #expect(together.byLocale.reduce(0) { $0 + $1.counts.accepted } > 0)
            })
    }

    private static let devices = 300

    private struct Ending {
        var outcomes: [OutcomeRow]
        var byLocale: [Report.Slice]
        var counts: DeliveryCounts
    }

    /// Two leases, in part retried, with outcomes of all kinds in any order.
    private static func history(
        on store: any AllRoles, seed: UInt64,
        settle: (any AllRoles, Int64, [Settlement]) async throws -> Void
    ) async throws -> Ending {
        var generator = SeededGenerator(seed: seed)
        try await importDevices(into: store)
        let run = try await store.startRun(try definition())
        for _ in 0..<3 {
            let first = try await store.lease(run, limit: 100)
            let second = try await store.lease(run, after: first.cursor, limit: 80)
            var settlements = (first.settlements(.accepted) + second.settlements(.accepted)).map { accepted in
                Self.outcome(accepted, &generator)
            }
            settlements.shuffle(using: &generator)
            if Bool.random(using: &generator) { settlements.sort { $0.lease < $1.lease } }
            try await settle(store, run, settlements)
        }
        try await store.expectSumsClose(run)
        let report = try await store.report(run)
        let rows = Collected<OutcomeRow>()
        _ = try await store.outcomes(run: run) { rows.add($0) }
        return Ending(outcomes: rows.all, byLocale: report.byLocale, counts: report.counts)
    }

    private static func outcome(_ accepted: Settlement, _ generator: inout SeededGenerator) -> Settlement {
        var settlement = accepted
        // A range of acceptances keeps an index in one byte, so that 254 is the first that does not fit.
        let indexes = [nil, 0, 1, 126, 253, 254]
        settlement.localeIndex = indexes[Int.random(in: indexes.indices, using: &generator)]
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: settlement.verdict = .retry(notBefore: noon)
        case 1: (settlement.verdict, settlement.status) = (.rejected, 400)
        case 2: (settlement.verdict, settlement.status, settlement.isInDoubt) = (.unknown, 0, true)
        default: break
        }
        return settlement
    }

    /// Every third of the other environment, so that those of a lease do not follow each other.
    private static func importDevices(into store: any AllRoles) async throws {
        let records = try (1...Self.devices).map { number in
            try record(number, environment: number.isMultiple(of: 3) ? .sandbox : .production)
        }
        _ = try await store.importDevices(records, now: noon)
    }
}
