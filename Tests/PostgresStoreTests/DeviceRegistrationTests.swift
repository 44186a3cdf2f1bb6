import Model
import PostgresStore
import Store
import StoreContract
import TestSupport
import Testing

/// What the promises of every store leave to this one: batches that are written together, and processes side by side.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct DeviceRegistrationTests {
    @Test func `a batch does what its records do one by one`() async throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<12 {
            let batches = try (0..<4).map { _ in try (0..<40).map { _ in try Self.anyRecord(&random) } }
            try await withStore { together in
                try await withStore { apart in
                    for batch in batches {
                        let registered = try await together.registerDevices(batch, reading: true, now: noon)
                        var expected: [RegisteredDevice] = []
                        for record in batch {
                            expected += try await apart.registerDevices([record], reading: true, now: noon)
                        }
                        #expect(registered.map(\.effect) == expected.map(\.effect))
                        // Who is new and goes in the same batch takes no id.
                        #expect(
                            registered.map { Self.unnumbered($0.device) } == expected.map { Self.unnumbered($0.device) }
                        )
                    }
                    let (left, right) = (try await Self.everybody(together), try await Self.everybody(apart))
                    #expect(left == right)
                    #expect(try await together.verify(budgets: [:]).isSound)
                    #expect(try await together.integrity() == [])
                }
            }
        }
    }

    @Test func `a dry run counts what its batch then does`() async throws {
        var random = SeededGenerator(seed: 11)
        let batches = try (0..<10).map { _ in try (0..<60).map { _ in try Self.anyRecord(&random) } }
        try await withStore { store in
            for batch in batches {
                let dry = try await store.importDevices(batch, now: noon, dryRun: true)
                let real = try await store.importDevices(batch, now: noon)
                #expect(dry == real)
            }
        }
    }

    @Test func `processes that import the same devices at once neither fail nor double`() async throws {
        try await withStores(4) { stores in
            let records = try (0..<3_000).map { try record($0, topic: $0 % 2 == 0 ? wendercast : "other") }
            let counts = try await withThrowingTaskGroup(of: ImportCounts.self) { group in
                for (index, store) in stores.enumerated() {
                    let mine = index % 2 == 0 ? records : records.reversed()
                    for start in stride(from: 0, to: mine.count, by: 500) {
                        let batch = Array(mine[start..<start + 500])
                        group.addTask { try await store.importDevices(batch, now: noon) }
                    }
                }
                return try await group.reduce(ImportCounts()) { $0 + $1 }
            }
            #expect(counts.inserted == records.count)
            #expect(counts.unchanged == records.count * 3)
            #expect(try await stores[0].deviceCounts().map(\.count).reduce(0, +) == records.count)
        }
    }

    @Test func `devices registered while others are pruned, removed and merged stay whole`() async throws {
        try await withStores(4) { stores in
            let old = noon - .seconds(1_000_000)
            let records = try (0..<400).map { number in
                try record(number) {
                    $0.lastSeenAt = old
                    $0.tags = ["a"]
                }
            }
            _ = try await stores[0].importDevices(records, now: old)
            let fans = try await stores[0].importSegment("fans", mode: .replace)
            try await fans.append(records.map { .installation($0.installationID ?? "") })
            _ = try await fans.commit(now: old)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for start in stride(from: 0, to: 400, by: 20) {
                        let seen = records[start..<start + 20].map { record in
                            var record = record
                            record.lastSeenAt = noon
                            return record
                        }
                        _ = try await stores[0].importDevices(seen, now: noon)
                    }
                }
                group.addTask {
                    for number in stride(from: 1, to: 400, by: 10) {
                        _ = try await stores[1].importDevices(
                            [try record(number, installation: "install-\(number - 1)") { $0.lastSeenAt = noon }],
                            now: noon)
                    }
                }
                group.addTask {
                    for _ in 0..<10 {
                        _ = try await stores[2].pruneDevices(notSeenSince: noon - .seconds(1), dryRun: false, now: noon)
                    }
                }
                group.addTask {
                    for _ in 0..<10 {
                        let all = try await stores[3].importSegment("others", mode: .replace)
                        try await all.append(records.map { .installation($0.installationID ?? "") })
                        _ = try await all.commit(now: noon)
                    }
                    for id in 1...20 { _ = try await stores[3].removeDevice(Int64(id), now: noon, by: "amy") }
                }
                try await group.waitForAll()
            }
            let verification = try await stores[0].verify(budgets: [:])
            #expect(verification.isSound, "\(verification.checks.filter { !$0.faults.isEmpty })")
            #expect(try await Self.everybody(stores[0]).allSatisfy { $0.record.lastSeenAt == noon })
        }
    }

    @Test func `a text with NUL is stored without it, and finds nothing`() async throws {
        try await withStore { store in
            let given = try record(1, installation: "in\0stall") { device in
                device.attributes = ["pl\0an": "p\0ro"]
                device.tags = ["\0a", "b"]
            }
            _ = try await store.importDevices([given], now: noon)
            #expect(try await store.importDevices([given], now: noon).unchanged == 1)
            let device = try #require(try await store.device(1)).record
            #expect(device.installationID == "install" && device.tags == ["a", "b"])
            #expect(device.attributes == ["plan": "pro"])
            #expect(try await store.devices(matching: "in\0stall").isEmpty)
            let fans = try await store.importSegment("fans", mode: .add)
            try await fans.append([.installation("in\0stall"), .user("\0"), .installation("install")])
            #expect(try await fans.commit(now: noon).unmatched == 2)
        }
    }

    /// Of few tokens and installations, so that they meet in every way.
    private static func anyRecord(_ random: inout SeededGenerator) throws -> DeviceRecord {
        let number = Int.random(in: 0..<12, using: &random)
        var device = try record(
            number, environment: Int.random(in: 0..<8, using: &random) == 0 ? .sandbox : .production,
            topic: Int.random(in: 0..<6, using: &random) == 0 ? "other" : wendercast)
        let name = Int.random(in: 0..<14, using: &random)
        device.installationID = name < 10 ? "install-\(name)" : name < 12 ? "install-\(number)" : nil
        if Bool.random(using: &random) {
            device.registeredAt = noon + .seconds(Int64.random(in: -3...3, using: &random))
        }
        if Bool.random(using: &random) { device.country = ["DE", "BR"].randomElement(using: &random) }
        if Bool.random(using: &random) { device.appVersion = ["4.2", "beta"].randomElement(using: &random) }
        if Bool.random(using: &random) { device.tags = [["a"], ["b", "a", "a"], []].randomElement(using: &random) }
        if Bool.random(using: &random) { device.attributes = [["plan": "pro"], [:]].randomElement(using: &random) }
        return device
    }

    private static func unnumbered(_ device: StoredDevice?) -> StoredDevice? {
        var device = device
        device?.id = 0
        return device
    }

    private static func everybody(_ store: PostgresDatabase) async throws -> [StoredDevice] {
        let found = StoreContract.Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: nil, matching: .everyone, now: noon) { found.add($0) }
        return found.all.compactMap { unnumbered($0) }.sorted { key($0) < key($1) }
    }

    private static func key(_ device: StoredDevice) -> String {
        "\(device.record.topic) \(device.record.environment) \(device.record.token.hex)"
    }
}

private func withStore(_ body: @Sendable (PostgresDatabase) async throws -> Void) async throws {
    try await withStores(1) { try await body($0[0]) }
}

/// One database, opened as by so many processes.
private func withStores(_ count: Int, _ body: @Sendable ([PostgresDatabase]) async throws -> Void) async throws {
    let cluster = try await PostgresCluster.shared
    let url = cluster.url(try await cluster.makeDatabase())
    var stores: [PostgresDatabase] = []
    for _ in 0..<count { stores.append(try await PostgresDatabase.open(url: url, time: .caller)) }
    let result: Result<Void, any Error>
    do { result = .success(try await body(stores)) } catch { result = .failure(error) }
    for store in stores { try store.close() }
    try result.get()
}
