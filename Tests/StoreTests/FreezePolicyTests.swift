import Model
import Store
import Testing

struct FreezePolicyTests {
    private static func campaign(_ pushType: PushType = .alert, _ change: (inout Campaign) -> Void = { _ in })
        -> Campaign
    {
        var campaign = Campaign(name: "c", topic: "t", pushType: pushType, template: "c")
        change(&campaign)
        return campaign
    }

    @Test(
        arguments: [
            (DeviceStatus.active, true, PushType.alert, nil), (.active, false, .alert, .alertsNotAllowed),
            (.active, false, .background, nil), (.suspended, true, .alert, .wrongEnvironment),
            (.gone, false, .alert, .tokenGone),
        ] as [(DeviceStatus, Bool, PushType, SuppressionReason?)])
    func `a device that may not be sent to is suppressed`(
        status: DeviceStatus, alertsAllowed: Bool, pushType: PushType, expected: SuppressionReason?
    ) {
        for var policy in [FreezePolicy(Self.campaign(pushType), waves: nil), FreezePolicy(pushType)] {
            let decision = policy.decide(
                device: 1, .production, status: status, alertsAllowed: alertsAllowed, locale: { nil }
            ) { nil }
            #expect(decision.suppression == expected)
            let byHand = policy.decideByHand(device: 1, status: status, alertsAllowed: alertsAllowed, variant: 7)
            #expect(byHand.suppression == expected && byHand.variant == 7)
        }
    }

    @Test func `a device stays in the holdout, without a variant, when it is gone or shows no alerts`() {
        let campaign = Self.campaign { campaign in
            campaign.holdoutPercent = 100
            campaign.variants = ["a", "b"].map { Campaign.Variant(name: $0, weight: 1, template: "c") }
        }
        var policy = FreezePolicy(campaign, waves: nil)
        for (status, alertsAllowed) in [
            (DeviceStatus.active, true), (.active, false), (.suspended, true), (.gone, true),
        ] {
            let held = policy.decide(
                device: 1, .production, status: status, alertsAllowed: alertsAllowed, locale: { nil }
            ) { nil }
            #expect(held.suppression == .holdout && held.variant == nil)
        }
        // Nor does a device of a variant change to another one.
        var all = campaign
        all.holdoutPercent = nil
        var treated = FreezePolicy(all, waves: nil)
        let gone = treated.decide(device: 1, .production, status: .gone, alertsAllowed: true, locale: { nil }) { nil }
        #expect(gone.suppression == .tokenGone && gone.variant == CampaignSplit(all).variant(of: 1))
        #expect(policy.decideByHand(device: 1, status: .active, alertsAllowed: true, variant: nil).suppression == nil)
    }

    @Test func `of a user's devices the seed goes first, then the one seen last, then the oldest`() {
        let rows: [(seen: [Int64], seeds: Set<Int64>, pick: Int64)] = [
            ([5], [], 1), ([5, 9, 7], [], 2), ([5, 5, 5], [], 1), ([9, 5, 9], [], 1), ([0, 0, 1], [], 3),
            ([5, 9, 7], [1], 1), ([5, 9, 7], [1, 3], 3),
        ]
        for row in rows {
            let campaign = Self.campaign { campaign in
                campaign.dedupe = .user
                campaign.stages = [Stage(.seeds(.everyone)), Stage(.rest)]
            }
            var policy = FreezePolicy(campaign, waves: nil, seeds: [row.seeds])
            #expect(policy.goesByUser)
            // Neighbours in the order of users, who have nothing to do with it.
            for (user, devices) in [("a", [64]), ("b", Array(1...Int64(row.seen.count))), ("c", [65])] {
                for device in devices {
                    let seenAt = user == "b" ? row.seen[Int(device) - 1] : 1
                    policy.see(device, of: user, status: .active, alertsAllowed: true, zone: { nil }, seenAt: seenAt)
                }
            }
            for device in [64, 65] + Array(1...Int64(row.seen.count)) {
                let decision = policy.decide(
                    device: device, .production, status: .active, alertsAllowed: true, locale: { nil }
                ) { nil }
                let isSent = device > 60 || device == row.pick
                #expect(decision.suppression == (isSent ? nil : .duplicateOfUser), "\(row), \(device)")
                #expect((decision.stage == nil) == !isSent)
            }
        }
    }

    @Test func `who was served before a freeze was cut short gets nothing more`() {
        var policy = FreezePolicy(Self.campaign { $0.dedupe = .user }, waves: nil)
        func see(_ device: Int64, _ user: String, wasSent: Bool? = nil) {
            policy.see(
                device, of: user, status: .active, alertsAllowed: true, zone: { nil }, seenAt: device, wasSent: wasSent)
        }
        see(1, "a", wasSent: true)
        see(2, "a")
        see(4, "b")
        see(3, "b", wasSent: true)
        see(5, "c", wasSent: false)
        see(6, "c")
        let sent = (1...6).filter { device in
            policy.decide(device: device, .production, status: .active, alertsAllowed: true, locale: { nil }) { nil }
                .suppression == nil
        }
        #expect(sent == [1, 3, 6])
    }

    @Test func `each device's wave starts by its own clock, and a zone is asked for in runs with waves only`() {
        var schedule = Schedule(trigger: .at("2027-01-15T09:00"))
        schedule.zone = .recipient
        schedule.unknownZone = .drop
        let campaign = Self.campaign { $0.schedule = schedule }
        var definition = RunDefinition(
            campaign: campaign, template: Template(name: "c"), variables: [:], plannedAt: noon)
        definition.wall = WallTime("2027-01-15T09:00")
        var policy = FreezePolicy(campaign, waves: RecipientWaves(definition, startedAt: noon - .seconds(86_400)))
        for _ in 0..<2 {
            // 9 in Berlin is noon here.
            let berlin = policy.decide(device: 1, .production, status: .active, alertsAllowed: true, locale: { nil }) {
                "Europe/Berlin"
            }
            #expect(berlin.suppression == nil && berlin.variant == nil && berlin.wave == noon)
            let nowhere = policy.decide(device: 1, .production, status: .active, alertsAllowed: true, locale: { nil }) {
                nil
            }
            #expect(nowhere.suppression == .unknownZone && nowhere.wave == nil)
            let gone = policy.decide(device: 1, .production, status: .gone, alertsAllowed: true, locale: { nil }) {
                "Europe/Berlin"
            }
            // Its events are compared from the same moment, but nothing waits for it.
            #expect(
                gone.suppression == .tokenGone && gone.wave == noon && gone.notBefore(at: noon - .seconds(9)) == nil)
        }
        var asked = false
        var plain = FreezePolicy(campaign, waves: nil)
        _ = plain.decide(device: 1, .production, status: .active, alertsAllowed: true, locale: { nil }) {
            asked = true
            return nil
        }
        #expect(!asked)
    }
}
