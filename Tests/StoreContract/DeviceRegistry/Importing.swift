import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var importing: [Promise] {
        Promise("every record is counted once") { store in
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
        Promise("topics are those that there is a device of, or was") { store in
            #expect(try await store.topics() == [])
            let records = [try record(1), try record(2, topic: "com.example.other"), try record(3)]
            _ = try await store.importDevices(records, now: noon)
            #expect(try await store.topics() == [wendercast, "com.example.other"])
            _ = try await store.removeDevice(2, now: noon, by: "test")
            #expect(try await store.topics() == [wendercast, "com.example.other"])
        }
        Promise("each record registered is told what became of it, and its device as it is then") { store in
            _ = try await store.importDevices([try record(1), try record(2), try record(3), try record(9)], now: noon)
            let records = [
                try record(4), try record(1), try record(2) { $0.locale = "de" },
                try record(30, installation: "install-3"), try record(9, installation: "install-2"), try record(4),
            ]
            let registered = try await store.registerDevices(records, reading: true, now: noon)
            #expect(
                registered.map(\.effect) == [.inserted, .unchanged, .updated, .tokenReplaced, .merged, .unchanged])
            #expect(registered.map(\.device?.record.installationID) == records.map(\.installationID))
            #expect(registered.map(\.device?.record.token) == records.map(\.token))
            let alone = try await store.registerDevices(records, reading: false, now: noon)
            #expect(alone.allSatisfy { $0.device == nil })
        }
        Promise("fields a record does not name keep their value") { store in
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
            expected.badge = 0
            let stored = try #require(try await store.devices(matching: "ray").first)
            #expect(stored.record == expected)
            #expect(stored.generation == 1)
        }
        Promise("empty tags remove them, other tags replace them") { store in
            _ = try await store.importDevices([try record(1) { $0.tags = ["a", "b"] }], now: noon)
            var counts = try await store.importDevices([try record(1) { $0.tags = ["b", "a"] }], now: noon)
            #expect(counts.unchanged == 1)
            counts = try await store.importDevices([try record(1) { $0.tags = ["c"] }], now: noon)
            #expect(counts.updated == 1)
            #expect(try await store.device(1)?.record.tags == ["c"])
            _ = try await store.importDevices([try record(1) { $0.tags = [] }], now: noon)
            #expect(try await store.device(1)?.record.tags == [])
        }
        Promise("a text that is not a language tag is kept as it is") { store in
            _ = try await store.importDevices([try record(1) { $0.locale = "klingon!" }], now: noon)
            #expect(try await store.device(1)?.record.locale == "klingon!")
        }
        Promise("a version that becomes unreadable compares with none") { store in
            _ = try await store.importDevices([try record(1) { $0.appVersion = "4.2" }], now: noon)
            _ = try await store.importDevices([try record(1) { $0.appVersion = "beta" }], now: noon)
            let version = try #require(AppVersion("1"))
            let reach = try await store.reach(
                of: .comparison(.appVersion, .greater, .version(version)), topic: wendercast, pushType: .alert,
                now: noon)
            #expect(reach.total == 0)
        }
        Promise("without an installation a device is known by its token") { store in
            let bare = try record(1) { $0.installationID = nil }
            _ = try await store.importDevices([bare], now: noon)
            let counts = try await store.importDevices([bare, try record(1, installation: "x")], now: noon)
            #expect(counts.unchanged == 1)
            #expect(counts.updated == 1)
            #expect(try await store.devices(matching: "x").map(\.id) == [1])
        }
        Promise("one token in two environments or topics is two devices") { store in
            let counts = try await store.importDevices(
                [
                    try record(1), try record(1, installation: "b", environment: .sandbox),
                    try record(1, topic: "other"),
                ],
                now: noon)
            #expect(counts.inserted == 3)
        }
        Promise("a new token raises the generation and makes the device active") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settleAndMark(
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
        Promise.each(
            [(-1, DeviceStatus.gone), (0, .gone), (1, .active)],
            { "the same token registered after the status makes the device active: \($0)" }
        ) { store, row in
            let (millisecondsAfter, expected) = row
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon)
            let registered = noon + .milliseconds(millisecondsAfter)
            _ = try await store.importDevices([try record(1) { $0.registeredAt = registered }], now: noon)
            #expect(try await store.device(1)?.status == expected)
        }
        Promise.each(
            [(-1, DeviceStatus.gone), (0, .gone), (1, .active)],
            { "a token named again without a registration's time, \($0.0) ms after a 410's moment: \($0.1)" }
        ) { store, row in
            let (millisecondsAfter, expected) = row
            _ = try await store.importDevices([try record(1)], now: noon - .seconds(3600))
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let counts = try await store.importDevices([try record(1)], now: noon + .milliseconds(millisecondsAfter))
            #expect(counts.unchanged == 1)
            // An older list read late turns nothing back.
            _ = try await store.importDevices([try record(1)], now: noon - .seconds(60))
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon + .seconds(10))
            #expect(try await store.device(1)?.status == expected)
        }
        Promise("a new device and a new token count as registered when they were heard of") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon + .seconds(1))
            _ = try await store.importDevices([try record(9, installation: "install-2")], now: noon + .seconds(2))
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, now: noon + .seconds(3))
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon + .seconds(4))
            #expect(try await store.deviceCounts().map(\.status) == [.active])
        }
        Promise("a list without registrations' times brings no dead token back") { store in
            _ = try await store.importDevices([try record(1)], now: noon - .seconds(60))
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon)
            _ = try await store.importDevices([try record(1) { $0.country = "DE" }], now: noon + .seconds(60))
            #expect(try await store.device(1)?.status == .gone)
        }
        Promise("what the app says of a registration passes over what was heard of it") { store in
            _ = try await store.importDevices([try record(1) { $0.registeredAt = noon - .seconds(60) }], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.importDevices([try record(1)], now: noon + .seconds(5))
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon + .seconds(10))
            #expect(try await store.device(1)?.status == .gone)
        }
        Promise("an older registration neither replaces a token nor turns the clock back") { store in
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
        Promise.each([0, 1], { "a new token registered \($0) ms after the old one replaces it" }) { store, later in
            _ = try await store.importDevices([try record(1) { $0.registeredAt = noon }], now: noon)
            let next = try record(7, installation: "install-1") { $0.registeredAt = noon + .milliseconds(later) }
            #expect(try await store.importDevices([next], now: noon).tokensReplaced == 1)
            let stored = try #require(try await store.device(1))
            #expect(stored.record.token == (try token(7)) && stored.generation == 2)
            // The same of a token that another installation had.
            _ = try await store.importDevices([try record(8) { $0.registeredAt = next.registeredAt }], now: noon)
            let other = try record(8, installation: "install-1") { $0.registeredAt = next.registeredAt }
            #expect(try await store.importDevices([other], now: noon).merged == 1)
            #expect(try await store.device(1)?.record.token == (try token(8)))
        }
        Promise("a token that moved to another installation does not move back with an older record") { store in
            let newer = try record(1, installation: "new") { $0.registeredAt = noon }
            let older = try record(1, installation: "old") { $0.registeredAt = noon - .seconds(1) }
            let counts = try await store.importDevices([newer, older], now: noon)
            #expect(counts.unchanged == 1)
            #expect(try await store.device(1)?.record.installationID == "new")
        }
        Promise("an installation reporting another device's token becomes one with it") { store in
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
        Promise("a text that names two devices, whatever it is of each, finds both") { store in
            let first = try record(0xABCD_EF12)
            let end = String(first.token.hex.suffix(8))
            let others = [try record(2) { $0.userID = end }, try record(3) { $0.installationID = end.uppercased() }]
            _ = try await store.importDevices([first] + others, now: noon)
            #expect(Set(try await store.devices(matching: end).map(\.id)) == [1, 2])
            #expect(Set(try await store.devices(matching: "…" + end).map(\.id)) == [1])
            #expect(Set(try await store.devices(matching: end.uppercased()).map(\.id)) == [1, 3])
            #expect(try await store.devices(matching: first.token.hex).map(\.id) == [1])
        }
        Promise("nothing but a whole name or an end of a token finds a device") { store in
            _ = try await store.importDevices(
                try (1...3).map { number in try record(number) { $0.userID = "user-\(number)" } }, now: noon)
            let hex = try record(1).token.hex
            // In parts: as one expression these take the compiler six seconds.
            let end = String(hex.suffix(8))
            let ofToken = [String(hex.prefix(8)), String(hex.dropFirst().prefix(16)), "%\(end)", "\(end)\u{200B}"]
            let others = [
                "%", "*", "_", "?", "install-", "install-_", "install-%", "INSTALL-1", " install-1", "install-1 ",
                "user", "user-%", "", "…", "'' OR 1=1", "nstall-1", "install-1\n",
            ]
            for text in ofToken + others {
                #expect(try await store.devices(matching: text).isEmpty, "\(text)")
            }
        }
        Promise("devices are found by installation, user, token and end of token") { store in
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
        Promise("devices of other topics do not hide the devices of a topic") { store in
            let text = "00000007"
            let others = try (100..<125).map { try record($0, topic: "other") { $0.userID = text } }
            let own = try record(1) { $0.installationID = text }
            let ending = try record(7)
            #expect(ending.token.hex.hasSuffix(text))
            _ = try await store.importDevices(others + [own, ending], now: noon)
            #expect(try await store.devices(matching: text).count >= 20)
            let found = try await store.devices(matching: text, topics: [wendercast])
            #expect(Set(found.map(\.record.installationID)) == [text, "install-7"])
            #expect(try await store.devices(matching: text, topics: [wendercast, "other"]).count >= 20)
            for topics in [[], ["none"], ["\0"]] as [Set<String>] {
                #expect(try await store.devices(matching: text, topics: topics).isEmpty)
            }
            #expect(try await store.device(installation: text, topic: wendercast)?.record.token == own.token)
            for (installation, topic) in [(text, "other"), ("install-1", wendercast), ("\0", wendercast), (text, "\0")]
            {
                #expect(try await store.device(installation: installation, topic: topic) == nil)
            }
        }
        Promise("an export gives back what was imported") { store in
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
            #expect(exported.all.map(\.record) == records.filter { $0.topic == wendercast }.map(\.withBadge))
        }
        Promise("a dry run counts what the import then does, and writes nothing") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let before = try await export(store)
            let records = [
                try record(1),
                try record(2) { $0.country = "DE" },
                try record(30, installation: "install-3"),
                try record(4, installation: "install-1"),
                try record(50, topic: "new.topic") { $0.tags = ["beta"] },
                try record(50, topic: "new.topic"),
            ]
            let dry = try await store.importDevices(records, now: noon, dryRun: true)
            #expect(try await export(store) == before)
            #expect(try await store.deviceCounts().map(\.topic) == [wendercast])
            let real = try await store.importDevices(records, now: noon)
            #expect(dry == real && dry.sum == records.count)
            #expect(real.inserted == 1 && real.tokensReplaced == 1 && real.merged == 1 && real.updated == 1)
        }
    }

    private static func export(_ store: any AllRoles) async throws -> [StoredDevice] {
        let found = Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: nil, matching: .everyone, now: noon) { found.add($0) }
        return found.all
    }
}
