import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var reach: [Promise] {
        Promise("the values of an app's active devices are listed, the most frequent ones first") { store in
            let records = try (1...6).map { number in
                try record(number) { device in
                    device.locale = number <= 3 ? "de" : number == 6 ? nil : "fr"
                    device.country = number == 1 ? "DE" : nil
                    device.appVersion = "4.\(number % 2)"
                    device.tags = number > 4 ? ["beta", "vip"] : number == 1 ? ["beta"] : []
                }
            }
            _ = try await store.importDevices(records, now: noon)
            #expect(
                try await store.audienceValues(topic: wendercast)
                    == AudienceValues(
                        locales: [.init("de", devices: 3), .init("fr", devices: 2)],
                        countries: [.init("DE", devices: 1)],
                        appVersions: [.init("4.0", devices: 3), .init("4.1", devices: 3)],
                        tags: [.init("beta", devices: 3), .init("vip", devices: 2)]))
            #expect(try await store.audienceValues(topic: "com.example.none") == AudienceValues())
        }
        Promise("devices whose silent budget is used up are counted") { store in
            _ = try await store.importDevices(try (1...6).map { try record($0) }, now: noon)
            let budget = Configuration.SilentBudget(limit: 2, window: .seconds(3600))
            // Devices 2, 4 and 6 get two, 1 and 3 get one.
            for (occurrence, audience) in [
                ("1", AudienceExpression.oneOf(.installationID, [2, 4, 6, 1].map { .text("install-\($0)") })),
                ("2", .oneOf(.installationID, [2, 4, 6, 3].map { .text("install-\($0)") })),
            ] {
                let run = try await store.startRun(
                    try definition(pushType: .background, audience: audience), occurrence: occurrence)
                var request = LeaseRequest(run: run, environment: .production, limit: 10, now: noon, owner: "a")
                request.silentBudget = budget
                let lease = try await store.lease(request)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            let rows: [(PushType, Configuration.SilentBudget?, Duration, Int)] = [
                (.background, budget, .zero, 3), (.background, budget, .seconds(3599), 3),
                (.background, budget, .seconds(3600), 0), (.background, nil, .zero, 0), (.alert, budget, .zero, 0),
                (.background, Configuration.SilentBudget(limit: 1), .zero, 5),
                (.background, Configuration.SilentBudget(limit: 0), .zero, 6),
            ]
            for (pushType, budget, later, expected) in rows {
                let campaign = Campaign(name: "c", topic: wendercast, pushType: pushType, template: "t")
                let reach = try await store.reach(of: campaign, budget: budget, now: noon + later)
                #expect(reach.silentBudget == expected, "\(pushType) \(later)")
                #expect(reach.total == 6)
            }
        }
        Promise("devices that frequency caps would hold back are counted: those that wait, and those left out") {
            store in
            _ = try await store.importDevices(
                try (1...6).map { number in try record(number) { $0.userID = number > 4 ? "u" : nil } }, now: noon)
            let caps = [
                FrequencyCap(limit: 1, window: .seconds(1800)),
                FrequencyCap(limit: 1, window: .seconds(1200), per: .user),
            ]
            let sent = try await store.startRun(try definition("sent", audience: installations([1, 2, 5])))
            let lease = try await store.capped(sent, caps)
            _ = try await store.settle(run: sent, lease.settlements(.accepted), now: noon)
            let inFlight = try await store.startRun(try definition("in-flight", audience: installations([3])))
            #expect(try await store.capped(inFlight, caps).deliveries.count == 1)
            func ask(
                at seconds: Int, expiresAfter: Int? = nil, as pushClass: String? = nil, _ caps: [FrequencyCap] = caps
            ) async throws -> Reach.CapSlice? {
                var planned = try definition("planned") {
                    $0.expiresAfter = expiresAfter.map { .seconds($0) }
                    $0.ownClass = pushClass
                }
                planned.plannedAt = noon + .seconds(seconds)
                let now = noon + .seconds(600)
                let preview = CapPreview(planned, caps: caps, now: now)
                let reach = try await store.reach(
                    of: planned.campaign, budget: nil, caps: preview, waves: nil, now: now)
                #expect(reach.total == 6)
                return reach.caps
            }
            let all = try #require(try await ask(at: 600))
            #expect(all.waiting == 5 && all.leftOut == 0 && all.lastSlotAt == noon + .seconds(2400))
            let some = try #require(try await ask(at: 0, expiresAfter: 1900))
            #expect(some.waiting == 4 && some.leftOut == 1 && some.lastSlotAt == noon + .seconds(1800))
            // Of what is in flight now the outcome will be known by then, and one device of the user waits for the other.
            let later = try #require(try await ask(at: 1800))
            #expect(later.waiting == 2 && later.leftOut == 0 && later.lastSlotAt == noon + .seconds(3000))
            let news = [FrequencyCap(limit: 1, window: .seconds(1800), classes: ["news"])]
            #expect(try await ask(at: 600, as: "news", news) == Reach.CapSlice())
            #expect(try await ask(at: 600, news) == nil)
        }
        Promise("what the devices of one user take from each other under a cap is foretold as the run does it") {
            store in
            let records = try (1...2_400).map { number in
                try record(number) { $0.userID = "user-\(number % 800)" }
            }
            _ = try await store.importDevices(records, now: noon)
            // A run is late after an hour, unless it says otherwise.
            func ask(_ window: Duration) async throws -> Reach.CapSlice? {
                let caps = [FrequencyCap(limit: 2, window: window, per: .user)]
                let planned = try definition("planned")
                return try await store.reach(
                    of: planned.campaign, budget: nil, caps: CapPreview(planned, caps: caps, now: noon), waves: nil,
                    now: noon
                ).caps
            }
            let long = try #require(try await ask(.seconds(7200)))
            #expect(long.leftOut == 800 && long.waiting == 0)
            let short = try #require(try await ask(.seconds(1800)))
            #expect(short.leftOut == 0 && short.waiting == 800 && short.lastSlotAt == noon + .seconds(1800))
        }
        Promise("what frequency caps would do to thousands is foretold in batches, wave by wave") { store in
            let records = try (1...2_500).map { number in
                try record(number) { $0.timeZone = number % 2 == 0 ? "Europe/Berlin" : "America/Sao_Paulo" }
            }
            _ = try await store.importDevices(records, now: noon)
            let caps = [FrequencyCap(limit: 1, window: .seconds(1800))]
            let sent = try await store.startRun(try definition("sent"))
            var cursor: Int64 = 0
            while true {
                var request = LeaseRequest(
                    run: sent, environment: .production, after: cursor, limit: 1000, now: noon, owner: "a")
                request.caps = CapRequest(
                    rule: CapRule(topic: wendercast, pushClass: "default", caps: caps),
                    latest: Expiry(plannedAt: noon, after: .seconds(60)))
                let lease = try await store.lease(request)
                guard !lease.deliveries.isEmpty else { break }
                cursor = lease.cursor
                _ = try await store.settle(run: sent, lease.settlements(.accepted), now: noon)
            }
            var schedule = Schedule(trigger: .at("2027-01-15T09:00"))
            schedule.zone = .recipient
            var planned = try definition("planned") { $0.schedule = schedule }
            planned.wall = WallTime("2027-01-15T09:00")
            let waves = RecipientWaves(planned, startedAt: noon)
            let reach = try await store.reach(
                of: planned.campaign, budget: nil, caps: CapPreview(planned, caps: caps, now: noon), waves: waves,
                now: noon)
            // It is 9 o'clock in Berlin, and for half an hour still their slots are used up.
            #expect(reach.caps?.waiting == 1_250 && reach.caps?.leftOut == 0)
            #expect(reach.caps?.lastSlotAt == noon + .seconds(1800))
        }
        Promise("locales and zones are counted by the text, those that look alike apart") { store in
            let zones = [nil, "", "Europe/Berlin", "europe/berlin", "Ü", nil, "Europe/Berlin", ""]
            let records = try zones.enumerated().map { number, zone in
                try record(number) {
                    $0.timeZone = zone
                    $0.locale = zone
                }
            }
            _ = try await store.importDevices(records, now: noon)
            let reach = try await store.reach(of: .everyone, topic: wendercast, pushType: .alert, now: noon)
            #expect(
                reach.byZone.map(\.zone).count == 5 && reach.byZone.reduce(0) { $0 + $1.count } == 8)
            #expect(reach.byZone.first { $0.zone == nil }?.count == 2)
            #expect(reach.byZone.first { $0.zone == "" }?.count == 2)
            #expect(reach.byZone.first { $0.zone == "Europe/Berlin" }?.count == 2)
            #expect(reach.total == 8)
        }
        Promise("a push type with tokens of its own reaches the devices of its own topic") { store in
            _ = try await store.importDevices(
                [try record(1), try record(2, topic: wendercast + ".voip")], now: noon)
            let campaign = Campaign(name: "call", topic: wendercast, pushType: .voip, template: "t")
            #expect(try await store.reach(of: campaign, budget: nil, now: noon).total == 1)
            var definition = try definition()
            definition.campaign = campaign
            let run = try await store.startRun(definition)
            #expect(try await store.lease(run).deliveries.map(\.device) == [2])
        }
    }

    private static func installations(_ numbers: [Int]) -> AudienceExpression {
        .oneOf(.installationID, numbers.map { .text("install-\($0)") })
    }
}
