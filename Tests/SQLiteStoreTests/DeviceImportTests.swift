import Model
import SQLiteStore
import Store
import Testing

@Suite(.timeLimit(.minutes(10)))
struct DeviceImportTests {
    @Test func `every record is counted once`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1), try record(2), try record(3)], now: noon)
            let records = [
                try record(1),
                try record(2) { $0.locale = "de" },
                try record(30, installation: "install-3"),
                try record(4),
            ]
            let counts = try await store.importDevices(records, now: noon)
            #expect(counts.unchanged == 1)
            #expect(counts.updated == 1)
            #expect(counts.tokensReplaced == 1)
            #expect(counts.inserted == 1)
            #expect(counts.sum == records.count)
        }
    }

    @Test func `fields a record does not name keep their value`() async throws {
        try await withStore { store in
            let full = try record(1) { device in
                device.userID = "ray"
                device.locale = "de_at"
                device.timeZone = "Europe/Vienna"
                device.country = "AT"
                device.appVersion = "4.10"
                device.osVersion = "18.1"
                device.model = "iPhone16,1"
                device.alertsAllowed = false
                device.registeredAt = noon
                device.lastSeenAt = noon
                device.tags = ["b", "a"]
                device.attributes = ["plan": "pro", "odd \"key\"\n": "ü\\"]
            }
            _ = try await store.importDevices([full, try record(1)], now: noon)
            var expected = full
            expected.locale = "de-AT"
            expected.tags = ["a", "b"]
            let stored = try #require(try await store.devices(matching: "ray").first)
            #expect(stored.record == expected)
            #expect(stored.generation == 1)
        }
    }

    @Test func `empty tags remove them, other tags replace them`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1) { $0.tags = ["a", "b"] }], now: noon)
            var counts = try await store.importDevices([try record(1) { $0.tags = ["b", "a"] }], now: noon)
            #expect(counts.unchanged == 1)
            counts = try await store.importDevices([try record(1) { $0.tags = ["c"] }], now: noon)
            #expect(counts.updated == 1)
            #expect(try await store.device(1)?.record.tags == ["c"])
            _ = try await store.importDevices([try record(1) { $0.tags = [] }], now: noon)
            #expect(try await store.device(1)?.record.tags == [])
        }
    }

    @Test func `a text that is no language tag is kept as it is`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1) { $0.locale = "klingon!" }], now: noon)
            #expect(try await store.device(1)?.record.locale == "klingon!")
        }
    }

    @Test func `a version that becomes unreadable compares with none`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1) { $0.appVersion = "4.2" }], now: noon)
            _ = try await store.importDevices([try record(1) { $0.appVersion = "beta" }], now: noon)
            let version = try #require(AppVersion("1"))
            let reach = try await store.reach(
                of: .comparison(.appVersion, .greater, .version(version)), topic: wendercast, pushType: .alert,
                now: noon)
            #expect(reach.total == 0)
        }
    }

    @Test func `without an installation a device is known by its token`() async throws {
        try await withStore { store in
            let bare = try record(1) { $0.installationID = nil }
            _ = try await store.importDevices([bare], now: noon)
            let counts = try await store.importDevices([bare, try record(1, installation: "x")], now: noon)
            #expect(counts.unchanged == 1)
            #expect(counts.updated == 1)
            #expect(try await store.devices(matching: "x").map(\.id) == [1])
        }
    }

    @Test func `one token in two environments or topics is two devices`() async throws {
        try await withStore { store in
            let counts = try await store.importDevices(
                [
                    try record(1), try record(1, installation: "b", environment: .sandbox),
                    try record(1, topic: "other"),
                ],
                now: noon)
            #expect(counts.inserted == 3)
        }
    }

    @Test func `a new token raises the generation and makes the device active`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settle(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon)
            #expect(try await store.device(1)?.status == .gone)
            _ = try await store.importDevices([try record(9, installation: "install-1")], now: noon)
            let stored = try #require(try await store.device(1))
            #expect(stored.status == .active)
            #expect(stored.statusReason == nil)
            #expect(stored.generation == 2)
            #expect(stored.record.token == (try token(9)))
            #expect(!stored.isProven)
        }
    }

    @Test(arguments: [(-1, DeviceStatus.gone), (0, .gone), (1, .active)])
    func `the same token registered after the status makes the device active`(
        millisecondsAfter: Int, expected: DeviceStatus
    ) async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settle(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon)
            let registered = noon + .milliseconds(millisecondsAfter)
            _ = try await store.importDevices([try record(1) { $0.registeredAt = registered }], now: noon)
            #expect(try await store.device(1)?.status == expected)
        }
    }

    @Test func `an older registration neither replaces a token nor turns the clock back`() async throws {
        try await withStore { store in
            _ = try await store.importDevices([try record(1) { $0.registeredAt = noon }], now: noon)
            let stale = try record(7, installation: "install-1") {
                $0.registeredAt = noon - .seconds(1)
                $0.country = "DE"
            }
            let counts = try await store.importDevices([stale], now: noon)
            #expect(counts.updated == 1)
            let stored = try #require(try await store.device(1))
            #expect(stored.record.token == (try token(1)))
            #expect(stored.record.registeredAt == noon)
            #expect(stored.record.country == "DE")
        }
    }

    @Test func `a token that moved to another installation does not move back with an older record`() async throws {
        try await withStore { store in
            let newer = try record(1, installation: "new") { $0.registeredAt = noon }
            let older = try record(1, installation: "old") { $0.registeredAt = noon - .seconds(1) }
            let counts = try await store.importDevices([newer, older], now: noon)
            #expect(counts.unchanged == 1)
            #expect(try await store.device(1)?.record.installationID == "new")
        }
    }

    @Test func `an installation reporting another device's token becomes one with it`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(
                [try record(1) { $0.tags = ["a"] }, try record(2) { $0.tags = ["a", "b"] }], now: noon)
            let members = try await store.importSegment("fans", mode: .replace)
            try await members.append([.installation("install-1"), .installation("install-2")])
            _ = try await members.commit(now: noon)
            let counts = try await store.importDevices([try record(2, installation: "install-1")], now: noon)
            #expect(counts.merged == 1)
            let stored = try #require(try await store.device(1))
            #expect(stored.record.token == (try token(2)))
            #expect(stored.record.tags == ["a", "b"])
            #expect(stored.generation == 2)
            #expect(try await store.device(2) == nil)
            #expect(try await store.segments().map(\.count) == [1])
            #expect(try await store.integrity() == [])
            // The id is never given to another device.
            _ = try await store.importDevices([try record(3)], now: noon)
            #expect(try await store.device(2) == nil)
            #expect(try await store.device(3) != nil)
        }
    }

    @Test func `devices are found by installation, user, token and end of token`() async throws {
        try await withStore { store in
            let device = try record(123_456) { $0.userID = "u1" }
            _ = try await store.importDevices([device, try record(2) { $0.userID = "u1" }], now: noon)
            let hex = device.token.hex
            #expect(try await store.devices(matching: "install-123456").map(\.id) == [1])
            #expect(try await store.devices(matching: "u1").map(\.id) == [1, 2])
            #expect(try await store.devices(matching: hex.uppercased()).map(\.id) == [1])
            #expect(try await store.devices(matching: "<\(hex)>").map(\.id) == [1])
            #expect(try await store.devices(matching: String(hex.suffix(8))).map(\.id) == [1])
            #expect(try await store.devices(matching: device.token.redacted).map(\.id) == [1])
            #expect(try await store.devices(matching: String(hex.suffix(9))).map(\.id) == [1])
            #expect(try await store.devices(matching: String(hex.suffix(7))).isEmpty)
            #expect(try await store.devices(matching: "nobody").isEmpty)
        }
    }

    @Test func `an export gives back what was imported`() async throws {
        try await withStore { store in
            let records = try (1...12).map { number in
                try record(number, topic: number % 2 == 0 ? wendercast : "other") {
                    $0.tags = []
                    $0.country = "DE"
                }
            }
            _ = try await store.importDevices(records, now: noon)
            let exported = Collected<StoredDevice>()
            let count = try await store.exportDevices(
                topic: wendercast, matching: .comparison(.country, .equal, .text("de")), now: noon
            ) { exported.add($0) }
            #expect(count == 6)
            #expect(exported.all.map(\.record) == records.filter { $0.topic == wendercast })
        }
    }
}
