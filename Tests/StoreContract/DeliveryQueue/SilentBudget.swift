import Model
import Store
import TestSupport
import Testing

extension DeliveryQueueContract {
    @PromiseList static var silentBudget: [Promise] {
        Promise("a fourth push waits until the first has left the window") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            try await fill(store)
            let run = try await silentRun(store, "fourth")
            let full = try await lease(store, run, now: noon + .seconds(10))
            let free = noon + .seconds(3600)
            #expect(full.deliveries.isEmpty && full.suppressed == 0 && full.nextDue == free)
            #expect(try await lease(store, run, now: free - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await lease(store, run, now: free).deliveries.count == 1)
            #expect(try await store.verifyLedger(budget).violations == 0)
        }
        Promise("a push that would expire before its slot is suppressed") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            try await fill(store)
            let run = try await silentRun(store, "fourth")
            let full = try await lease(store, run, now: noon + .seconds(10), expiresAt: noon + .seconds(3600))
            #expect(full.suppressed == 1)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["silent_budget"])
            try await store.expectSumsClose(run)
        }
        Promise("a push that never reached APNs gives its slot back") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await silentRun(store, "refused")
            var cursor: Int64 = 0
            for _ in 0..<10 {
                let lease = try await lease(store, run, now: noon, after: cursor)
                cursor = lease.cursor
                #expect(lease.deliveries.count == 1)
                var settlements = lease.settlements(.retry(notBefore: noon), status: 0)
                settlements[0].mayHaveReachedAPNs = false
                _ = try await store.settle(run: run, settlements, now: noon)
            }
            #expect(try await store.verifyLedger(budget).pushes == 0)
        }
        Promise("a retry takes a slot of its own, and a doubtful push keeps its own") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await silentRun(store, "retried")
            let first = try await lease(store, run, now: noon)
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: noon), status: 503), now: noon)
            _ = try await lease(store, run, now: noon)
            #expect(try await store.recover(run, now: noon + .seconds(5)).resent == 1)
            let third = try await lease(store, run, now: noon + .seconds(5))
            #expect(third.deliveries.map(\.attempt) == [3])
            _ = try await store.settle(run: run, third.settlements(.retry(notBefore: noon), status: 503), now: noon)
            let fourth = try await lease(store, run, now: noon + .seconds(6))
            #expect(fourth.deliveries.isEmpty && fourth.nextDue == noon + .seconds(3600))
        }
        Promise("a new token does not fill the budget up again, nor does a merge") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            try await fill(store)
            _ = try await store.importDevices([try record(3, installation: "install-1")], now: noon)
            let run = try await silentRun(store, "after")
            #expect(try await lease(store, run, now: noon + .seconds(60)).deliveries.isEmpty)
            // 9 is fresh and takes over the token of 2, whose budget is used up.
            _ = try await store.importDevices([try record(9)], now: noon)
            let merged = try await store.importDevices([try record(2, installation: "install-9")], now: noon)
            #expect(merged.merged == 1)
            let last = try await silentRun(store, "last")
            #expect(try await lease(store, last, now: noon + .seconds(60)).deliveries.isEmpty)
            #expect(try await store.verifyLedger(budget).violations == 0)
        }
        Promise("pushes in flight for a device that is merged count for the other for an hour more") { store in
            _ = try await store.importDevices([try record(2)], now: noon)
            for name in ["a", "b", "c"] {
                #expect(try await lease(store, try await silentRun(store, name), now: noon).deliveries.count == 1)
            }
            _ = try await store.importDevices([try record(9)], now: noon)
            let merge = [try record(2, installation: "install-9")]
            #expect(try await store.importDevices(merge, now: noon + .seconds(60)).merged == 1)
            let run = try await silentRun(store, "after")
            let full = try await lease(store, run, now: noon + .seconds(61))
            let free = noon + .seconds(60 + 3600 + 3600)
            #expect(full.deliveries.isEmpty && full.suppressed == 0 && full.nextDue == free)
            #expect(try await lease(store, run, now: free - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await lease(store, run, now: free).deliveries.count == 1)
        }
        Promise.each(
            [(2, 3601), (1, 3602)], { "a budget lowered to less than was sent waits until enough have left: \($0)" }
        ) { store, row in
            let (limit, free) = row
            _ = try await store.importDevices([try record(1)], now: noon)
            try await fill(store)
            let run = try await silentRun(store, "fourth")
            let lowered = Configuration.SilentBudget(limit: limit, window: .seconds(3600))
            func sent(at now: Timestamp) async throws -> (count: Int, nextDue: Timestamp?) {
                let lease = try await store.lease(
                    LeaseRequest(
                        run: run, environment: .production, limit: 100, now: now, owner: "a", silentBudget: lowered))
                return (lease.deliveries.count, lease.nextDue)
            }
            let moment = noon + .seconds(free)
            #expect(try await sent(at: noon + .seconds(10)) == (0, moment))
            #expect(try await sent(at: moment - .milliseconds(1)).count == 0)
            #expect(try await sent(at: moment).count == 1)
            #expect(try await store.verifyLedger(lowered).violations > 0)
        }
        Promise("a budget of none suppresses everything") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await silentRun(store, "none")
            let lease = try await store.lease(
                LeaseRequest(
                    run: run, environment: .production, limit: 10, now: noon, owner: "a",
                    silentBudget: Configuration.SilentBudget(limit: 0)))
            #expect(lease.deliveries.isEmpty && lease.suppressed == 1)
        }
        // Every push arrives at APNs at some random moment between its lease and its outcome, as seen from nowhere in
        // the store.
        Promise.each(
            Nightly.rows([1, 2, 3], atNight: [4, 5, 6]),
            { "no rolling window at APNs ever holds more than the limit: \($0)" }
        ) { store, seed in
            var walk = try await SilentWalk(store, seed: UInt64(seed), budget: budget)
            for _ in 0..<400 { try await walk.step() }
            #expect(walk.arrivals.values.reduce(0) { $0 + $1.count } > 150)
            #expect(walk.violations == 0)
            #expect(try await store.verifyLedger(budget).violations == 0)
        }
    }

    private static let budget = Configuration.SilentBudget(limit: 3, window: .seconds(3600))

    private static func lease(
        _ store: any AllRoles, _ run: Int64, now: Timestamp, after: Int64 = 0, expiresAt: Timestamp? = nil
    ) async throws -> Lease {
        try await store.lease(
            LeaseRequest(
                run: run, environment: .production, after: after, limit: 100, now: now, owner: "a",
                silentBudget: budget, expiry: .until(expiresAt)))
    }

    private static func silentRun(_ store: any AllRoles, _ name: String) async throws -> Int64 {
        try await store.startRun(try definition(name, pushType: .background))
    }

    /// Three pushes whose outcomes came at noon, at noon + 1 s and at noon + 2 s.
    private static func fill(_ store: any AllRoles) async throws {
        for second in 0..<3 {
            let lease = try await lease(store, try await silentRun(store, "run-\(second)"), now: noon)
            _ = try await store.settle(
                run: Int64(second + 1), lease.settlements(.accepted), now: noon + .seconds(second))
        }
    }
}

private struct SilentWalk {
    static let devices = 12

    let budget: Configuration.SilentBudget
    /// By installation.
    private(set) var arrivals: [Int64: [Int64]] = [:]

    private let store: any AllRoles
    private var random: SeededGenerator
    private var now = noon
    private var runs: [Int64] = []
    private var inFlight: [(run: Int64, leasedAt: Timestamp, settlement: Settlement)] = []

    init(_ store: any AllRoles, seed: UInt64, budget: Configuration.SilentBudget) async throws {
        self.store = store
        self.budget = budget
        random = SeededGenerator(seed: seed)
        _ = try await store.importDevices(try (1...Self.devices).map { try record($0) }, now: noon)
    }

    var violations: Int {
        let windowMs = budget.window.wholeMilliseconds
        return arrivals.values.reduce(0) { sum, moments in
            sum + moments.count { end in moments.count { $0 > end - windowMs && $0 <= end } > budget.limit }
        }
    }

    mutating func step() async throws {
        now = now + .milliseconds(Int.random(in: 0...400_000, using: &random))
        switch Int.random(in: 0..<13, using: &random) {
        case 0, 12: try await startRun()
        case 1: try await crash()
        case 2: try await replaceToken()
        case 3..<8: try await lease()
        default: try await settle()
        }
    }

    private mutating func startRun() async throws {
        runs.append(
            try await store.startRun(
                try definition("run-\(runs.count)", pushType: .background) { $0.maxAttempts = 9 }, now: now))
    }

    private mutating func lease() async throws {
        guard let run = runs.randomElement(using: &random) else { return }
        let expiresAt = Bool.random(using: &random) ? nil : now + .seconds(7200)
        let lease = try await store.lease(
            LeaseRequest(
                run: run, environment: .production, limit: Int.random(in: 1...6, using: &random), now: now, owner: "a",
                silentBudget: budget, expiry: .until(expiresAt)))
        for settlement in lease.settlements(.accepted) { inFlight.append((run, now, settlement)) }
    }

    private mutating func settle() async throws {
        inFlight.shuffle(using: &random)
        for _ in 0..<Int.random(in: 0...10, using: &random) {
            guard var last = inFlight.popLast() else { return }
            last.settlement.mayHaveReachedAPNs = Int.random(in: 0..<5, using: &random) > 0
            switch Int.random(in: 0..<4, using: &random) {
            case 0: last.settlement.verdict = .retry(notBefore: now)
            case 1: last.settlement.verdict = .unknown
            default: break
            }
            if last.settlement.mayHaveReachedAPNs { arrive(last.settlement.device, from: last.leasedAt) }
            _ = try await store.settle(run: last.run, [last.settlement], now: now)
        }
    }

    private mutating func arrive(_ device: Int64, from start: Timestamp) {
        let moment = Int64.random(in: start.milliseconds...now.milliseconds, using: &random)
        arrivals[device, default: []].append(moment)
    }

    private mutating func crash() async throws {
        guard let run = runs.randomElement(using: &random) else { return }
        for flight in inFlight where flight.run == run { arrive(flight.settlement.device, from: flight.leasedAt) }
        inFlight.removeAll { $0.run == run }
        _ = try await store.recover(run, now: now)
    }

    private mutating func replaceToken() async throws {
        let number = Int.random(in: 1...Self.devices, using: &random)
        let fresh = Int.random(in: 1_000...1_000_000, using: &random)
        _ = try await store.importDevices([try record(fresh, installation: "install-\(number)")], now: now)
    }
}
