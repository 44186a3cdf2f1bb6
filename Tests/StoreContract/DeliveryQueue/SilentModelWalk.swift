import Model
import Store
import TestSupport
import Testing

/// Random campaigns, outcomes, crashes and late answers over days of a manual clock: the store decides as the model
/// does, delivery by delivery.
extension DeliveryQueueContract {
    @PromiseList static var silentModel: [Promise] {
        Promise("the newest that waits is the one that goes out") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let budget = Configuration.SilentBudget(limit: 1, window: .seconds(3600))
            var runs: [Int64] = []
            for (number, key) in ["refresh", "other", "refresh"].enumerated() {
                let definition = try definition("c\(number)", pushType: .background) {
                    $0.collapse = .key(key)
                }
                runs.append(try await store.startRun(definition))
            }
            func lease(_ run: Int64, at now: Timestamp) async throws -> [Int64] {
                let lease = try await store.lease(
                    LeaseRequest(
                        run: run, environment: .production, limit: 10, now: now, owner: "a", silentBudget: budget))
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: now)
                return lease.deliveries.map(\.device)
            }
            // Device 1 and 2 had theirs; then an old, another and a new one wait.
            #expect(try await lease(runs[0], at: noon) == [1, 2])
            let old = try await store.startRun(
                try definition("old", pushType: .background) { $0.collapse = .key("refresh") })
            #expect(try await lease(old, at: noon + .seconds(1)) == [])
            #expect(try await lease(runs[1], at: noon + .seconds(1)) == [])
            let new = try await store.startRun(
                try definition("new", pushType: .background) { $0.collapse = .key("refresh") })
            #expect(try await store.summary(run: old).pending == 2)
            #expect(try await lease(new, at: noon + .seconds(2)) == [])
            #expect(try await store.report(old).suppressed == [.init(status: 0, reason: "coalesced", count: 2)])
            #expect(try await store.summary(run: runs[1]).pending == 2)
            // One older than the one that waits does not begin to wait.
            #expect(try await lease(runs[2], at: noon + .seconds(3)) == [])
            #expect(try await store.report(runs[2]).suppressed.map(\.reason) == ["coalesced"])
            #expect(try await lease(new, at: noon + .seconds(3600)) == [1, 2])
            for run in runs + [old, new] { try await store.expectSumsClose(run) }
        }
        Promise("by default the newest of one app and template is the one that goes out") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let budget = Configuration.SilentBudget(limit: 1, window: .seconds(3600))
            func start(_ name: String, _ change: (inout Campaign) -> Void) async throws -> Int64 {
                try await store.startRun(try definition(name, pushType: .background, change))
            }
            func lease(_ run: Int64, at now: Timestamp) async throws -> Int {
                let lease = try await store.lease(
                    LeaseRequest(
                        run: run, environment: .production, limit: 10, now: now, owner: "a", silentBudget: budget))
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: now)
                return lease.deliveries.count
            }
            let first = try await start("first") { _ in }
            #expect(try await lease(first, at: noon) == 1)
            // The device had its push; all of these wait.
            let old = try await start("old") { $0.template = "refresh" }
            let other = try await start("other") { $0.template = "badges" }
            let apart = try await start("apart") {
                $0.template = "refresh"
                $0.collapse = .none
            }
            let named = try await start("named") { $0.collapse = .key("refresh") }
            for run in [old, other, apart, named] { #expect(try await lease(run, at: noon + .seconds(1)) == 0) }
            let new = try await start("new") { $0.template = "refresh" }
            #expect(try await lease(new, at: noon + .seconds(2)) == 0)
            #expect(try await store.report(old).suppressed == [.init(status: 0, reason: "coalesced", count: 1)])
            for run in [other, apart, named, new] { #expect(try await store.summary(run: run).pending == 1) }
            #expect(try await lease(new, at: noon + .seconds(3600)) == 1)
        }
        // Noon is 3 in the morning in New York.
        Promise("a newer one that waits for the morning does not take the place of one that waits for its slot") {
            store in
            _ = try await store.importDevices([try record(1) { $0.timeZone = "America/New_York" }], now: noon)
            var schedule = Schedule(trigger: .none)
            schedule.quietHours = .init(fromMinute: 22 * 60, toMinute: 8 * 60, policy: .defer)
            let quiet = QuietTimes(schedule)
            func start(_ name: String, _ key: String) async throws -> Int64 {
                try await store.startRun(
                    try definition(name, pushType: .background) { $0.collapse = .key(key) })
            }
            func sent(_ run: Int64, at now: Timestamp, _ quiet: QuietTimes? = nil) async throws -> Int {
                var request = LeaseRequest(
                    run: run, environment: .production, limit: 10, now: now, owner: "a",
                    silentBudget: .init(limit: 1, window: .seconds(3600)))
                request.quiet = quiet
                let lease = try await store.lease(request)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: now)
                return lease.deliveries.count
            }
            #expect(try await sent(try await start("first", "other"), at: noon) == 1)
            let (old, new) = (try await start("old", "refresh"), try await start("new", "refresh"))
            #expect(try await sent(old, at: noon + .seconds(1)) == 0)
            #expect(try await sent(new, at: noon + .seconds(2), quiet) == 0)
            #expect(try await store.summary(run: old).pending == 1)
            // Its slot is taken by another: it goes on waiting beside the newer one.
            let free = noon + .seconds(3600)
            #expect(try await sent(try await start("second", "other"), at: free) == 1)
            #expect(try await sent(old, at: free) == 0)
            #expect(try await store.summary(run: old).pending == 1)
            #expect(try await sent(old, at: free + .seconds(3600)) == 1)
            #expect(try await sent(new, at: noon + .seconds(5 * 3600), quiet) == 1)
            for run in [old, new] { try await store.expectSumsClose(run) }
        }
        Promise.each(
            Nightly.rows([1, 2], atNight: [3, 4]), { "the store decides as a budget counted by brute force: \($0)" },
            opening: { stores, seed in
                var walk = try await ModelWalk(stores, seed: UInt64(seed))
                for number in 0..<300 {
                    try await walk.step()
                    if number % 3 == 0 { try await walk.compare() }
                }
                try walk.close()
                #expect(walk.sent > 60)
                #expect(walk.coalesced > 0)
            })
    }
}

private struct ModelWalk {
    static let devices: Int64 = 6
    static let maxAttempts = 4
    static let budget = Configuration.SilentBudget(limit: 2, window: .seconds(3600))

    private(set) var sent = 0
    private let stores: StoreUnderTest
    private var store: any AllRoles
    private var model = SilentModel(budget)
    private var random: SeededGenerator
    private var now = noon
    private var runs: [Int64] = []
    private var inFlight: [(run: Int64, settlement: Settlement)] = []

    init(_ stores: StoreUnderTest, seed: UInt64) async throws {
        self.stores = stores
        random = SeededGenerator(seed: seed)
        store = try await stores.open()
        _ = try await store.importDevices(try (1...Int(Self.devices)).map { try record($0) }, now: noon)
    }

    var coalesced: Int {
        model.runs.values.reduce(0) { sum, run in
            sum + run.deliveries.values.count { $0.state == .ended(.suppressed, "coalesced") }
        }
    }

    func close() throws { try store.close() }

    mutating func step() async throws {
        now = now + .milliseconds(Int.random(in: 0...250_000, using: &random))
        switch Int.random(in: 0..<20, using: &random) {
        case 0...1: try await start()
        case 2: try await crash()
        case 3: try await newToken()
        case 4...11: try await lease()
        default: try await settle()
        }
    }

    private mutating func start() async throws {
        let key = ["news", "refresh", nil].randomElement(using: &random) ?? nil
        let expiry: Duration? = [nil, .seconds(600), .seconds(5400)].randomElement(using: &random) ?? nil
        var definition = try definition("run-\(runs.count)", pushType: .background) {
            $0.collapse = key.map { .key($0) } ?? .run
            $0.maxAttempts = Self.maxAttempts
            $0.expiresAfter = expiry
        }
        definition.plannedAt = now
        let run = try await store.startRun(definition, now: now)
        runs.append(run)
        let deliveries = Dictionary(uniqueKeysWithValues: (1...Self.devices).map { ($0, SilentModel.Delivery()) })
        model.runs[run] = .init(key: key, expiresAt: definition.expiry.moment(wave: nil), deliveries: deliveries)
    }

    private mutating func lease() async throws {
        guard let run = runs.suffix(8).randomElement(using: &random) else { return }
        let lease = try await store.lease(
            LeaseRequest(
                run: run, environment: .production, limit: 100, now: now, owner: "a", silentBudget: Self.budget,
                expiry: .until(model.runs[run]?.expiresAt)))
        #expect(Set(lease.deliveries.map(\.device)) == model.lease(run, now: now))
        inFlight += lease.settlements(.accepted).map { (run, $0) }
        sent += lease.deliveries.count
    }

    private mutating func settle() async throws {
        inFlight.shuffle(using: &random)
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            guard var last = inFlight.popLast() else { return }
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                last.settlement.verdict = .retry(notBefore: now)
                last.settlement.mayHaveReachedAPNs = false
                last.settlement.attempt -= 1
            case 1: last.settlement.verdict = .retry(notBefore: now + .seconds(60))
            case 2: last.settlement.verdict = .unknown
            case 3: last.settlement.verdict = .rejected
            default: break
            }
            if last.settlement.verdict != .accepted { last.settlement.reason = "Said" }
            _ = try await store.settle(run: last.run, [last.settlement], now: now)
            model.settle(last.run, last.settlement, now: now)
        }
    }

    /// The process ends; the next one opens the file. Some answers still come, as to a process that was only believed
    /// dead, the others never.
    private mutating func crash() async throws {
        try store.close()
        store = try await stores.open()
        for run in runs {
            _ = try await store.recover(run, now: now)
            model.recover(run, maxAttempts: Self.maxAttempts, now: now)
        }
        now = now + .seconds(Int.random(in: 0...20, using: &random))
        try await settle()
        inFlight = []
    }

    private mutating func newToken() async throws {
        let device = Int.random(in: 1...Int(Self.devices), using: &random)
        let fresh = Int.random(in: 1_000...1_000_000, using: &random)
        _ = try await store.importDevices([try record(fresh, installation: "install-\(device)")], now: now)
    }

    func compare() async throws {
        for device in 1...Self.devices {
            for delivery in try await store.history(ofDevice: device, limit: 10_000) {
                let expected = try #require(model.runs[delivery.run]?.deliveries[device])
                #expect(Self.state(delivery) == expected.state, "device \(device) of run \(delivery.run)")
            }
        }
        #expect(try await store.verifyLedger(Self.budget).violations == 0)
        for run in runs.suffix(2) { try await store.expectSumsClose(run) }
    }

    private static func state(_ delivery: DeviceDelivery) -> SilentModel.State {
        switch delivery.outcome.state {
        case .pending where delivery.isLeased: .inFlight
        case .pending:
            delivery.notBefore.map { .waiting(until: $0, forBudget: delivery.outcome.reason == "silent_budget") }
                ?? .fresh
        case let state: .ended(state, delivery.outcome.reason)
        }
    }
}
