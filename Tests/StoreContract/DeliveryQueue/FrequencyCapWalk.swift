package import Model
package import Store
package import Testing

extension DeliveryQueue where Self: RunLog & RunOwnership & DeviceRegistry & StoreUpkeep {
    /// A lease under these caps.
    ///
    /// - Parameter clock: what the clock that nobody sets shows after noon, and by how much the other is set.
    package func capped(
        _ run: Int64, _ caps: [FrequencyCap], as pushClass: String = FrequencyCap.usualClass,
        topic: String = wendercast, now: Timestamp = noon, latest: Duration = .seconds(10 * 86_400),
        expiresAt: Timestamp? = nil, limit: Int = 1000, clock: (Duration, Duration)? = nil, hasCollapseID: Bool = true
    ) async throws -> Lease {
        var request = LeaseRequest(
            run: run, environment: .production, limit: limit, now: now, owner: "a", expiry: .until(expiresAt))
        request.caps = CapRequest(
            rule: CapRule(topic: topic, pushClass: pushClass, caps: caps),
            latest: Expiry(plannedAt: noon, after: latest), hasCollapseID: hasCollapseID)
        request.clocks = clock.map { ClockReading(wall: noon + $0 + $1, uptime: .seconds(1000) + $0, boot: "b") }
        return try await lease(request)
    }

    /// A run for devices that got three pushes, whose outcomes came at noon, at noon + 1 s and at noon + 2 s.
    package func full(_ caps: [FrequencyCap], devices: [Int] = [1], clock: Duration? = nil) async throws -> Int64 {
        _ = try await importDevices(try devices.map { try record($0) }, now: noon)
        for second in 0..<3 {
            let run = try await startRun(try definition("run-\(second)"))
            let lease = try await capped(run, caps, clock: clock.map { ($0, .zero) })
            #expect(lease.deliveries.count == devices.count)
            _ = try await settle(run: run, lease.settlements(.accepted), now: noon + .seconds(second))
        }
        return try await startRun(try definition("fourth"))
    }

    /// - Parameter pushes: in the ledger, those of persons again.
    package func expectCapsKept(pushes: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let check = try #require(
            try await verify(budgets: [:], faultsMax: 20)[CapScan.name], sourceLocation: sourceLocation)
        #expect(check.faults == [], sourceLocation: sourceLocation)
        if let pushes { #expect(check.compared == pushes, sourceLocation: sourceLocation) }
    }
}

/// Random leases, outcomes, crashes and new tokens. Every push arrives at APNs at some random moment between its lease and
/// its outcome, as seen from nowhere in the store; the caps are counted from these arrivals alone, copies that take each
/// other's place as one.
struct CapWalk {
    struct Arrival {
        /// Of what is on a screen.
        struct Alert: Hashable {
            var device: Int64
            var run: Int64
            /// Of one that stays beside the run's others.
            var copy: Int?
        }

        var alert: Alert
        var pushClass: String
        var moment: Int64
    }

    private struct CapRun {
        var id: Int64
        var pushClass: String
        var hasCollapseID: Bool
    }

    private static let devices = 12
    private static let classes = ["news", "marketing", "security"]
    private static let caps = [
        FrequencyCap(limit: 2, window: .seconds(1800)),
        FrequencyCap(limit: 3, window: .seconds(3600), per: .user, classes: ["news", "marketing"]),
        FrequencyCap(limit: 5, window: .seconds(5400), per: .user, reserve: ["security": 2]),
    ]

    private(set) var arrivals: [Arrival] = []

    private let store: any AllRoles
    private var random: SeededGenerator
    private var now = noon
    private var runs: [CapRun] = []
    private var inFlight: [(run: CapRun, leasedAt: Timestamp, settlement: Settlement)] = []
    /// The user of each device by its id.
    private var users: [Int64: Int64] = [:]

    init(_ store: any AllRoles, seed: UInt64) async throws {
        self.store = store
        random = SeededGenerator(seed: seed)
        _ = try await store.importDevices(
            try (1...Self.devices).map { number in try record(number) { $0.userID = "u\(number / 2)" } }, now: noon)
        for number in 1...Self.devices {
            let device = try #require(try await store.devices(matching: "install-\(number)").first)
            users[device.id] = Int64(number / 2)
        }
    }

    /// Of all windows that end with a push, those that hold more than its class is allowed.
    var violations: Int {
        Self.caps.reduce(0) { sum, cap in
            let counted = Dictionary(grouping: arrivals.filter { cap.covers($0.pushClass) }) { arrival in
                cap.per == .device ? arrival.alert.device : users[arrival.alert.device] ?? -1
            }
            let length = cap.window.wholeMilliseconds
            return sum
                + counted.values.reduce(0) { sum, list in
                    sum
                        + list.count { end in
                            let inWindow = list.filter { $0.moment > end.moment - length && $0.moment <= end.moment }
                            return Set(inWindow.map(\.alert)).count > cap.limit
                        }
                }
        }
    }

    mutating func step() async throws {
        now = now + .milliseconds(Int.random(in: 0...300_000, using: &random))
        switch Int.random(in: 0..<13, using: &random) {
        case 0, 12: try await startRun()
        case 1: try await crash()
        case 2: try await replaceToken()
        case 3..<8: try await lease()
        default: try await settle()
        }
    }

    private mutating func startRun() async throws {
        let pushClass = Self.classes[Int.random(in: 0..<Self.classes.count, using: &random)]
        let run = try await store.startRun(
            try definition("run-\(runs.count)") { $0.maxAttempts = 9 }, now: now)
        runs.append(CapRun(id: run, pushClass: pushClass, hasCollapseID: Int.random(in: 0..<3, using: &random) > 0))
    }

    private mutating func lease() async throws {
        guard let run = runs.randomElement(using: &random) else { return }
        let expiresAt = Bool.random(using: &random) ? nil : now + .seconds(7200)
        let limit = Int.random(in: 1...6, using: &random)
        let lease = try await store.capped(
            run.id, Self.caps, as: run.pushClass, now: now, latest: .seconds(30 * 86_400), expiresAt: expiresAt,
            limit: limit, hasCollapseID: run.hasCollapseID)
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
            if last.settlement.mayHaveReachedAPNs {
                arrive(last.settlement, of: last.run, from: last.leasedAt)
            }
            _ = try await store.settle(run: last.run.id, [last.settlement], now: now)
        }
    }

    private mutating func arrive(_ settlement: Settlement, of run: CapRun, from start: Timestamp) {
        let moment = Int64.random(in: start.milliseconds...now.milliseconds, using: &random)
        let alert = Arrival.Alert(
            device: settlement.device, run: run.id, copy: run.hasCollapseID ? nil : settlement.leaseNumber)
        arrivals.append(Arrival(alert: alert, pushClass: run.pushClass, moment: moment))
    }

    private mutating func crash() async throws {
        guard let run = runs.randomElement(using: &random) else { return }
        for flight in inFlight where flight.run.id == run.id {
            arrive(flight.settlement, of: run, from: flight.leasedAt)
        }
        inFlight.removeAll { $0.run.id == run.id }
        _ = try await store.recover(run.id, now: now)
    }

    private mutating func replaceToken() async throws {
        let number = Int.random(in: 1...Self.devices, using: &random)
        let fresh = Int.random(in: 1_000...1_000_000, using: &random)
        _ = try await store.importDevices([try record(fresh, installation: "install-\(number)")], now: now)
    }
}
