import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var attributes: [Promise] {
        Promise("attributes are set beside those that are stored") { store in
            _ = try await store.importDevices(
                [try named { $0.attributes = ["plan": "gold", "city": "Rome"] }], now: noon)
            var counts = try await store.importDevices([try named { $0.attributes = ["other": "x"] }], now: noon)
            #expect(counts.updated == 1)
            #expect(try await stored(store) == ["plan": "gold", "city": "Rome", "other": "x"])
            for known in [["plan": "gold"], ["other": "x", "city": "Rome"], [:]] {
                counts = try await store.importDevices([try named { $0.attributes = known }], now: noon)
                #expect(counts.unchanged == 1, "\(known)")
            }
            counts = try await store.importDevices([try named { $0.attributes = ["plan": "pro"] }], now: noon)
            #expect(counts.updated == 1)
            #expect(try await stored(store) == ["plan": "pro", "city": "Rome", "other": "x"])
        }
        Promise("attributes that replace take the place of all that are stored") { store in
            _ = try await store.importDevices(
                [try named { $0.attributes = ["plan": "gold", "city": "Rome"] }], now: noon)
            let replacing = try named {
                $0.attributes = ["plan": "pro"]
                $0.replacesAttributes = true
            }
            var counts = try await store.importDevices([replacing], now: noon)
            #expect(counts.updated == 1)
            #expect(try await stored(store) == ["plan": "pro"])
            counts = try await store.importDevices([replacing], now: noon)
            #expect(counts.unchanged == 1)
            let emptying = try named {
                $0.attributes = [:]
                $0.replacesAttributes = true
            }
            counts = try await store.importDevices([emptying], now: noon)
            #expect(counts.updated == 1)
            #expect(try await stored(store) == [:])
        }
        Promise("what is marked is taken away, and nothing else") { store in
            let full = try named {
                ($0.userID, $0.locale, $0.timeZone, $0.country) = ("ray", "de", "Europe/Berlin", "DE")
                ($0.appVersion, $0.osVersion, $0.model, $0.alertsAllowed) = ("4.10", "18.1", "iPhone16,1", true)
                $0.attributes = ["plan": "gold", "city": "Rome"]
                ($0.tags, $0.badge) = (["a"], 3)
            }
            _ = try await store.importDevices([full], now: noon)
            let some = try named { $0.erased = [.locale, .appVersion, .attribute("plan"), .attribute("none")] }
            var counts = try await store.importDevices([some], now: noon)
            #expect(counts.updated == 1)
            var expected = full
            (expected.locale, expected.appVersion, expected.attributes) = (nil, nil, ["city": "Rome"])
            #expect(try await store.device(1)?.record == expected)
            let newer = AudienceExpression.comparison(
                .appVersion, .greater, .version(try #require(AppVersion("1"))))
            #expect(try await store.reach(of: newer, topic: wendercast, pushType: .alert, now: noon).total == 0)
            counts = try await store.importDevices([some], now: noon)
            #expect(counts.unchanged == 1)
            let rest = try named {
                $0.erased = [.userID, .timeZone, .country, .osVersion, .model, .alertsAllowed, .attributes]
            }
            counts = try await store.importDevices([rest], now: noon)
            #expect(counts.updated == 1)
            let bare = try #require(try await store.device(1)).record
            #expect(bare.userID == nil && bare.timeZone == nil && bare.country == nil && bare.osVersion == nil)
            #expect(bare.model == nil && bare.alertsAllowed == nil && bare.attributes == [:])
            #expect(bare.installationID == "install-1" && bare.tags == ["a"] && bare.badge == 3)
        }
        Promise("what a record erases and sets, it sets; of several for one device the last word counts") { store in
            _ = try await store.importDevices(
                [try named { $0.attributes = ["plan": "gold", "city": "Rome"] }], now: noon)
            let records = [
                try named {
                    $0.erased = [.attribute("plan"), .locale]
                    ($0.locale, $0.attributes) = ("fr", ["plan": "pro"])
                },
                try named { $0.erased = [.attribute("city")] },
                try named { $0.attributes = ["city": "Oslo", "age": "7"] },
                try named { $0.erased = [.attribute("age")] },
            ]
            _ = try await store.importDevices(records, now: noon)
            #expect(try await stored(store) == ["plan": "pro", "city": "Oslo"])
            #expect(try await store.device(1)?.record.locale == "fr")
        }
        Promise("a new device has what its records say together") { store in
            let records = [
                try named {
                    ($0.userID, $0.badge, $0.attributes) = ("ray", 4, ["plan": "gold", "city": "Rome"])
                    $0.erased = [.locale]
                },
                try named {
                    $0.attributes = ["age": "7"]
                    $0.erased = [.attribute("plan"), .userID]
                },
            ]
            _ = try await store.importDevices(records, now: noon)
            #expect(try await stored(store) == ["city": "Rome", "age": "7"])
            let device = try #require(try await store.device(1))
            #expect(device.record.userID == nil && device.badge == 4)
        }
    }

    private static func named(_ change: (inout DeviceRecord) -> Void) throws -> DeviceRecord { try record(1, change) }

    private static func stored(_ store: any AllRoles) async throws -> [String: String]? {
        try await store.device(1)?.record.attributes
    }
}

extension DeviceRecord {
    /// As a store gives it back: a device whose badge nobody set has 0.
    var withBadge: DeviceRecord {
        var record = self
        record.badge = badge ?? 0
        return record
    }
}
