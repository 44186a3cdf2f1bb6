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

    @Test func `only those sent to can be in the holdout, and the holdout has no variant`() {
        let campaign = Self.campaign { campaign in
            campaign.holdoutPercent = 100
            campaign.variants = ["a", "b"].map { Campaign.Variant(name: $0, weight: 1, template: "c") }
        }
        var policy = FreezePolicy(campaign, waves: nil)
        let held = policy.decide(device: 1, .production, status: .active, alertsAllowed: true, locale: { nil }) { nil }
        #expect(held.suppression == .holdout && held.variant == nil)
        let gone = policy.decide(device: 1, .production, status: .gone, alertsAllowed: true, locale: { nil }) { nil }
        #expect(gone.suppression == .tokenGone && gone.variant == CampaignSplit(campaign).variant(of: 1))
        #expect(policy.decideByHand(device: 1, status: .active, alertsAllowed: true, variant: nil).suppression == nil)
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
