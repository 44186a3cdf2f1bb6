import Model
import Store
import Testing

extension DeviceRegistryContract {
    @PromiseList static var reach: [Promise] {
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
}
