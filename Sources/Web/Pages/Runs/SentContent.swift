import Campaigns
import Model

/// What a run sends: its words as phones show them, its values and its audience, as they were frozen.
struct SentContent: Sendable {
    /// The first words. `nil` if phones show none.
    var excerpt: String?
    /// The address of the campaign's page, whose files may have changed since.
    var campaignAddress: String
    var campaign: String
    /// The topic of the app.
    var topic: String
    var facts: [PlanView.Fact]
    var phones: [PhoneScreen]
    /// The reason why there are no screens.
    var phonesReason: String?

    init(_ definition: RunDefinition) {
        excerpt = definition.excerpt(in: [])
        campaign = definition.campaignOfFiles
        topic = definition.campaign.topic
        campaignAddress = CampaignPage.address(campaign)
        facts =
            [
                .init(audience: AudienceSummary(definition.campaign)),
                .init(name: "Template", value: definition.template.name),
            ]
            + definition.variables.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value) }
        phones = definition.correction?.kind == .recall ? [] : (try? PhoneScreen.all(of: definition)) ?? []
        if phones.isEmpty { phonesReason = "This run removes notifications, and shows none." }
    }
}
