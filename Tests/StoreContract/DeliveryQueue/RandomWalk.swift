import Model
import Store
import TestSupport
import Testing

/// Random work on one run, followed from outside: nothing is in flight twice, nothing is lost, the sums always close.
extension DeliveryQueueContract {
    @PromiseList static var randomWalks: [Promise] {
        Promise.each(
            Nightly.rows([1, 2, 3, 4], atNight: [5, 6, 7, 8]), { "the sums close after every step: \($0)" },
            opening: { stores, seed in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                var walk = try await Walk(store, owners, seed: UInt64(seed))
                for _ in 0..<150 {
                    try await walk.step()
                    try await store.expectSumsClose(walk.run)
                }
                try await walk.finish()
                try await store.expectSumsClose(walk.run)
                #expect(walk.doubled == 0)
                let counts = try await store.summary(run: walk.run)
                #expect(counts.audience == Walk.devices && counts.settled == Walk.devices)
                #expect(counts.accepted == walk.accepted.count)
            })
    }
}

private struct Walk {
    static let devices = 400

    let store: any AllRoles
    let run: Int64
    private(set) var accepted: Set<Int64> = []
    private(set) var doubled = 0

    private var random: SeededGenerator
    private var now = noon
    private let owners: Mortals
    private var owner = 0
    private var cursors: [PushEnvironment: Int64] = [:]
    private var inFlight: [Settlement] = []
    private var old: [Settlement] = []

    init(_ store: any AllRoles, _ owners: Mortals, seed: UInt64) async throws {
        self.store = store
        self.owners = owners
        random = SeededGenerator(seed: seed)
        let records = try (1...Self.devices).map { number in
            try record(number, environment: number % 3 == 0 ? .sandbox : .production)
        }
        _ = try await store.importDevices(records, now: noon)
        run = try await store.startRun(try definition { $0.maxAttempts = 4 }, owner: "0")
    }

    mutating func step() async throws {
        now = now + .milliseconds(Int.random(in: 0...5_000, using: &random))
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<8: try await lease()
        case 8..<15: try await settle(count: Int.random(in: 0...60, using: &random))
        case 15: try await changeDevices()
        case 16: _ = try await store.settle(run: run, Array(old.shuffled(using: &random).prefix(20)), now: now)
        case 17:
            _ = try await store.suspendMismatched(run: run, .production, now: now)
            _ = try await store.markGone(run: run, now: now)
        case 18: _ = try await store.heartbeat(run, owner: "\(owner)", now: now)
        default: try await crash()
        }
    }

    mutating func finish() async throws {
        for _ in 0..<2_000 {
            now = now + .seconds(20)
            try await lease()
            try await settle(count: inFlight.count)
            let counts = try await store.summary(run: run)
            if counts.pending + counts.leased == 0 { break }
        }
        try await store.release(run, by: Actor("\(owner)"), state: .finished, reason: nil, now: now)
    }

    private mutating func lease() async throws {
        for environment in PushEnvironment.allCases {
            let lease = try await store.lease(
                run, after: cursors[environment] ?? 0, limit: Int.random(in: 1...40, using: &random), now: now,
                owner: "\(owner)", environment: environment)
            cursors[environment] = lease.cursor
            let busy = Set(inFlight.map(\.device))
            doubled += lease.deliveries.count { busy.contains($0.device) || accepted.contains($0.device) }
            inFlight += lease.settlements(.accepted)
        }
    }

    private mutating func settle(count: Int) async throws {
        inFlight.shuffle(using: &random)
        var batch = Array(inFlight.prefix(count))
        inFlight.removeFirst(batch.count)
        for index in batch.indices { decide(&batch[index]) }
        accepted.formUnion(batch.filter { $0.verdict == .accepted }.map(\.device))
        _ = try await store.settle(run: run, batch, now: now)
        old += batch
    }

    private mutating func decide(_ settlement: inout Settlement) {
        switch Int.random(in: 0..<10, using: &random) {
        case 0:
            settlement.verdict = .rejected
            settlement.status = 410
            settlement.reason = "Unregistered"
            settlement.effect = .gone(since: now)
        case 1:
            settlement.verdict = .rejected
            settlement.status = 400
            settlement.reason = "BadDeviceToken"
        case 2: settlement.verdict = .unknown
        case 3, 4:
            let wait = Duration.milliseconds(Int.random(in: 0...20_000, using: &random))
            settlement.verdict = settlement.attempt < 4 ? .retry(notBefore: now + wait) : .rejected
        case 5: settlement.verdict = .suppressed(.payloadTooLarge)
        default: settlement.verdict = .accepted
        }
    }

    private mutating func changeDevices() async throws {
        let number = Int.random(in: 1...Self.devices, using: &random)
        let other = Int.random(in: 1...Self.devices, using: &random)
        let registered = now
        let records = [
            try record(1_000 + Int.random(in: 0...9_999, using: &random), installation: "install-\(number)"),
            try record(other, installation: "install-\(number)") { $0.registeredAt = registered },
            try record(100_000 + other),
        ]
        _ = try await store.importDevices(records, now: now)
    }

    /// The owner dies; another takes over.
    private mutating func crash() async throws {
        owners.end("\(owner)")
        owner += 1
        #expect(try await store.claim(run, by: Actor("\(owner)"), now: now) == .claimed)
        let counts = try await store.recover(run, now: now)
        #expect(counts.resent + counts.unknown == inFlight.count)
        old += inFlight
        inFlight = []
        cursors = [:]
    }
}
