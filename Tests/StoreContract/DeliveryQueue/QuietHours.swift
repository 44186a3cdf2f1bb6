import Model
import Store
import Testing

/// Noon is 2027-01-15T08:00:00Z: 9 in Berlin, 3 in New York, 17 in Tokyo.
extension DeliveryQueueContract {
    @PromiseList static var quietHours: [Promise] {
        Promise("who sleeps waits for the morning there") { store in
            let run = try await run(store)
            let quiet = quiet(.defer)
            let first = try await lease(store, run, quiet)
            #expect(first.deliveries.map(\.device) == [1])
            #expect(first.nextDue == Self.morning)
            _ = try await store.settle(run: run, first.settlements(.accepted), now: noon)
            let second = try await lease(store, run, quiet)
            #expect(second.deliveries.map(\.device) == [3])
            _ = try await store.settle(run: run, second.settlements(.accepted), now: noon)
            let none = try await lease(store, run, quiet, now: Self.morning - .milliseconds(1))
            #expect(none.deliveries.isEmpty && none.suppressed == 0 && none.nextDue == Self.morning)
            #expect(try await store.history(ofDevice: 2, limit: 1).first?.outcome.reason == "quiet_hours")
            try await store.expectSumsClose(run)
            var woken: [Int64] = []
            for _ in 0..<2 {
                let lease = try await lease(store, run, quiet, now: Self.morning)
                woken += lease.deliveries.map(\.device)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: Self.morning)
            }
            #expect(woken == [2, 4, 5])
            #expect(try await store.summary(run: run).accepted == 5)
            try await store.expectSumsClose(run)
        }
        Promise.each(
            [
                (Schedule.UnknownZone.named("America/New_York"), ["quiet_hours": 3]),
                (.named("Asia/Tokyo"), ["quiet_hours": 1]), (.drop, ["quiet_hours": 1, "unknown_zone": 2]),
            ],
            { "drop leaves out who sleeps, and an unknown zone as it is told: \($0)" }
        ) { store, row in
            let (unknownZone, suppressed) = row
            let run = try await run(store)
            let quiet = quiet(.drop, unknownZone: unknownZone)
            while true {
                let lease = try await lease(store, run, quiet)
                if lease.deliveries.isEmpty { break }
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            let report = try await store.report(run)
            #expect(Dictionary(report.suppressed.map { ($0.reason, $0.count) }, uniquingKeysWith: +) == suppressed)
            #expect(report.counts.accepted == 5 - suppressed.values.reduce(0, +))
            try await store.expectSumsClose(run)
        }
        Promise.each(
            [(-1, 3, "quiet_hours"), (0, 3, "quiet_hours"), (1, 0, "expired")],
            { "a morning after the expiry is too late: \($0)" }
        ) { store, row in
            let (secondsBeyond, suppressed, reason) = row
            let run = try await run(store)
            let expiresAt = Self.morning + .seconds(secondsBeyond)
            var left = 0
            for _ in 0..<3 {
                let lease = try await lease(store, run, quiet(.defer), expiresAt: expiresAt)
                left += lease.suppressed
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(left == suppressed)
            let late = try await lease(store, run, quiet(.defer), now: expiresAt, expiresAt: expiresAt)
            #expect(late.deliveries.isEmpty && late.suppressed == 3 - suppressed)
            #expect(try await store.report(run).suppressed.map(\.reason) == [reason])
            try await store.expectSumsClose(run)
        }
        Promise("a retry that comes due at night waits as well") { store in
            let run = try await run(store)
            let first = try await lease(store, run, quiet(.defer))
            let evening = noon + .seconds(13 * 3600 + 60)
            _ = try await store.settle(
                run: run, first.settlements(.retry(notBefore: evening), status: 503, reason: "Shutdown"), now: noon)
            let late = try await lease(store, run, quiet(.defer), now: evening)
            #expect(!late.deliveries.contains { $0.device == 1 })
            let waiting = try #require(try await store.history(ofDevice: 1, limit: 1).first)
            // 8 in Berlin.
            #expect(waiting.notBefore == noon + .seconds(23 * 3600))
            #expect(waiting.outcome.attempts == 1)
        }
    }

    private static let zones = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", nil, "Nowhere/AtAll"]
    /// 8 in the morning in New York.
    private static let morning = noon + .seconds(5 * 3600)

    private static func quiet(
        _ policy: Schedule.QuietHours.Policy, unknownZone: Schedule.UnknownZone = .named("America/New_York")
    ) -> QuietTimes? {
        var schedule = Schedule(trigger: .none)
        schedule.unknownZone = unknownZone
        schedule.quietHours = .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: policy)
        return QuietTimes(schedule)
    }

    /// Five devices, one for each of the zones.
    private static func run(_ store: any AllRoles) async throws -> Int64 {
        let records = try Self.zones.enumerated().map { index, zone in
            try record(index + 1) { $0.timeZone = zone }
        }
        _ = try await store.importDevices(records, now: noon)
        return try await store.startRun(try definition())
    }

    private static func lease(
        _ store: any AllRoles, _ run: Int64, _ quiet: QuietTimes?, now: Timestamp = noon, expiresAt: Timestamp? = nil
    ) async throws -> Lease {
        try await store.lease(
            LeaseRequest(
                run: run, environment: .production, limit: 2, now: now, owner: "a", expiry: .until(expiresAt),
                quiet: quiet))
    }
}
