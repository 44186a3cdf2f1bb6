package import Model

/// A campaign as its files say now, ready to be started.
package struct ReadyCampaign: Hashable, Sendable {
    package let campaign: Campaign
    package let template: Template
    /// By variant's name.
    package let variantTemplates: [String: Template]
    /// When its file was last written.
    package let changedAt: Timestamp
    /// Nil: it does not start by itself.
    package let timetable: Timetable?

    package init(
        campaign: Campaign, template: Template, variantTemplates: [String: Template] = [:], changedAt: Timestamp
    ) {
        self.campaign = campaign
        self.template = template
        self.variantTemplates = variantTemplates
        self.changedAt = changedAt
        timetable = campaign.schedule.flatMap(Timetable.init)
    }

    /// What would be sent at an occurrence, with the variables' defaults and what is given besides.
    package func definition(
        for occurrence: Occurrence, with variables: [String: String] = [:]
    ) throws -> RunDefinition {
        var definition = definition(plannedAt: occurrence.startsAt)
        definition.variables = try RunVariables.merged(campaign, with: variables)
        return definition.planned(for: occurrence)
    }

    /// With the variables' defaults.
    package func definition(plannedAt moment: Timestamp) -> RunDefinition {
        RunDefinition(
            campaign: campaign, template: template, variantTemplates: variantTemplates,
            variables: campaign.variables, plannedAt: moment)
    }

    /// Tells one schedule from another: when and by which clock it starts, and nothing else.
    var scheduleHash: Int64 {
        guard let schedule = campaign.schedule else { return 0 }
        let zone: String =
            switch schedule.zone {
            case .named(let name): name
            case .recipient: "recipient"
            case nil: ""
            }
        let trigger: String =
            switch schedule.trigger {
            case .at(let text): "at \(text)"
            case .cron(let text): "cron \(text)"
            case .none: ""
            }
        return Int64(bitPattern: FNV1a.hash("\(trigger) \(zone)"))
    }
}
