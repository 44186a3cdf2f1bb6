import Model
package import Store
import Testing

/// What every run does many times on a large store. A store that has done it once has prepared its statements.
package struct HotPath {
    /// The deliveries of the large run.
    package static let deliveries = 1_000_000
    /// The stored devices, which have the first deliveries. The other deliveries are answered.
    package static let devices = 200_000
    /// The deliveries that are fresh. Those behind them wait, up to the last stored device.
    package static let fresh = 100_000

    private let store: any AllRoles

    package init(_ store: any AllRoles) { self.store = store }

    /// A run that is claimed, and whose deliveries are still to be written by the test.
    package func begin() async throws -> Int64 {
        let records = try (1...1000).map { number in
            try record(number) { $0.userID = "user-\(number / 2)" }
        }
        _ = try await store.importDevices(records, now: noon)
        let run = try await store.createRun(try definition(), occurrence: "large", now: noon, by: "test").run.id
        _ = try await store.claim(run, by: "a", now: noon)
        return run
    }

    package func walk(_ run: Int64) async throws {
        let later = noon + .seconds(10)
        for turn in 0..<3 {
            var request = LeaseRequest(
                run: run, environment: .production, limit: 200, now: later + .seconds(turn), owner: "a",
                fields: [.attribute("plan")])
            request.paces = [SharedPace(name: "all", pace: Campaign.Pace(pushesPerSecond: 1_000_000))]
            let lease = try await store.lease(request)
            let thirds = lease.settlements(.accepted).count / 3
            let parts = [
                lease.settlements(.accepted).prefix(thirds),
                lease.settlements(
                    .rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)
                ).dropFirst(thirds).prefix(thirds),
                lease.settlements(.retry(notBefore: later + .seconds(60)), status: 503).dropFirst(2 * thirds),
            ]
            _ = try await store.settle(run: run, parts.flatMap { Array($0) }, now: later)
            _ = try await store.heartbeat(run, owner: "a", now: later)
            _ = try await store.waits(of: run, now: later)
            _ = try await store.summary(run: run)
        }
        let left = try await store.lease(
            LeaseRequest(run: run, environment: .production, limit: 10, now: later, owner: "a"))
        #expect(!left.deliveries.isEmpty)
        // Too few for a range.
        _ = try await store.settle(run: run, Array(left.settlements(.accepted).prefix(3)), now: later)
        _ = try await store.recover(run, heldBy: "a", try await store.abandonedLeases(run), [], now: later)
        _ = try await store.markGone(run: run, now: later)
        try await silent()
        try await capped()
        for filter in [DeliveryFilter(), DeliveryFilter(standing: .rejected)] {
            _ = try await store.deliveries(of: run, filter, after: 0, limit: 50)
        }
        _ = try await store.history(ofDevice: 1)
    }

    private func silent() async throws {
        let run = try await frozen(try definition("refresh", pushType: .background, audience: Self.few))
        let request = LeaseRequest(
            run: run, environment: .production, limit: 10, now: noon, owner: "a",
            silentBudget: Configuration.SilentBudget())
        let lease = try await store.lease(request)
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
    }

    private func capped() async throws {
        let run = try await frozen(try definition("capped", audience: Self.few) { $0.dedupe = .user })
        var request = LeaseRequest(run: run, environment: .production, limit: 10, now: noon, owner: "a")
        let cap = FrequencyCap(limit: 3, window: .seconds(86_400), per: .user)
        request.caps = CapRequest(
            rule: CapRule(topic: wendercast, pushClass: FrequencyCap.usualClass, caps: [cap]),
            latest: Expiry(plannedAt: noon, after: .seconds(86_400)), hasCollapseID: true)
        let lease = try await store.lease(request)
        _ = try await store.settle(
            run: run, lease.settlements(.rejected, status: 400, reason: "BadDeviceToken"), now: noon)
    }

    private static var few: AudienceExpression { .comparison(.installationID, .equal, .text("install-5")) }

    private func frozen(_ definition: RunDefinition) async throws -> Int64 {
        let run = try await store.createRun(
            definition, occurrence: definition.campaign.name, now: noon, by: "test"
        ).run.id
        _ = try await store.claim(run, by: "a", now: noon)
        _ = try await store.freeze(run, by: "a", now: noon) { _ in }
        return run
    }
}
