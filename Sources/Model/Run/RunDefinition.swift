/// Everything a run needs that must not change under it, frozen when the run is created.
///
/// It is stored as JSON with a hash of that text, and a run that was created by an older Fanfare must still be readable:
/// no coding key here or in the types it holds ever changes its text. SQL reads `campaign.topic`, `campaign.pushType` and
/// `campaign.variants[n].name` out of it. Values of an enum's case that have no label stand under `_0`, `_1`.
package struct RunDefinition: Hashable, Sendable, Codable {
    package var campaign: Campaign
    package var template: Template
    /// By variant's name; empty when the campaign has no variants.
    package var variantTemplates: [String: Template]
    /// The campaign's defaults with what was given at the start.
    package var variables: [String: String]
    package var plannedAt: Timestamp
    /// What each device's clock shows when its turn comes; nil: the turn of all is at ``plannedAt``.
    package var wall: WallTime?
    /// In place of the campaign's audience: those who got another run.
    package var correction: Correction?

    /// The version of the stored form, written as `version`. Definitions without the key are of version 1; one of a
    /// later version is refused, since its meaning is not known.
    package static let version = 1

    private enum CodingKeys: String, CodingKey {
        case campaign = "campaign", template = "template", variantTemplates = "variantTemplates"
        case variables = "variables", plannedAt = "plannedAt", wall = "wall", version = "version"
        case correction = "correction"
    }

    package init(
        campaign: Campaign, template: Template, variantTemplates: [String: Template] = [:],
        variables: [String: String], plannedAt: Timestamp, wall: WallTime? = nil, correction: Correction? = nil
    ) {
        self.correction = correction
        self.campaign = campaign
        self.template = template
        self.variantTemplates = variantTemplates
        self.variables = variables
        self.plannedAt = plannedAt
        self.wall = wall
    }

    /// The same for an occurrence of the campaign's schedule.
    package func planned(for occurrence: Occurrence) -> RunDefinition {
        var definition = self
        definition.plannedAt = occurrence.startsAt
        definition.wall = occurrence.isByEachClock ? occurrence.wall : nil
        return definition
    }

    /// What a delivery of this variant is rendered from; nil: one without a variant.
    package func template(ofVariant index: Int?) -> Template {
        guard let index, campaign.variants.indices.contains(index) else { return template }
        return variantTemplates[campaign.variants[index].name] ?? template
    }

    package var expiry: Expiry { Expiry(plannedAt: plannedAt, after: campaign.expiresAfter) }
}

extension RunDefinition {
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let version = try values.decodeIfPresent(Int.self, forKey: .version) ?? 1
        guard (1...Self.version).contains(version) else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: values,
                debugDescription: "run definition of version \(version); this Fanfare knows up to \(Self.version)")
        }
        self.init(
            campaign: try values.decode(Campaign.self, forKey: .campaign),
            template: try values.decode(Template.self, forKey: .template),
            variantTemplates: try values.decode([String: Template].self, forKey: .variantTemplates),
            variables: try values.decode([String: String].self, forKey: .variables),
            plannedAt: try values.decode(Timestamp.self, forKey: .plannedAt),
            wall: try values.decodeIfPresent(WallTime.self, forKey: .wall),
            correction: try values.decodeIfPresent(Correction.self, forKey: .correction))
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(campaign, forKey: .campaign)
        try values.encode(template, forKey: .template)
        try values.encode(variantTemplates, forKey: .variantTemplates)
        try values.encode(variables, forKey: .variables)
        try values.encode(plannedAt, forKey: .plannedAt)
        try values.encodeIfPresent(wall, forKey: .wall)
        try values.encodeIfPresent(correction, forKey: .correction)
        try values.encode(Self.version, forKey: .version)
    }
}

extension RunDefinition {
    /// Whether its pushes wait for the device's silent budget, and count against it. A recall does neither: a wrong alert
    /// stays on the screen for as long as the recall waits.
    package var goesBySilentBudget: Bool { campaign.pushType == .background && correction?.kind != .recall }
}

/// What a run puts right: it is for exactly those whom another run reached, or may have reached.
package struct Correction: Hashable, Sendable, Codable {
    /// What becomes of that run's notifications.
    package enum Kind: String, Hashable, Sendable, Codable {
        /// New text in the place of what is on the screen, by the same collapse id.
        case replace
        /// Away from the screen, by an app that knows how.
        case recall
    }

    package var run: Int64
    package var kind: Kind

    private enum CodingKeys: String, CodingKey {
        case run = "run", kind = "kind"
    }

    package init(of run: Int64, _ kind: Kind) {
        self.run = run
        self.kind = kind
    }
}

/// Until when a run tries to deliver: its planned time plus `expires_after`; with waves, each wave's own time plus that.
package struct Expiry: Hashable, Sendable {
    package var plannedAt: Timestamp
    /// Nil: Fanfare sets no limit. Zero: one attempt, not stored by APNs.
    package var after: Duration?

    package init(plannedAt: Timestamp, after: Duration?) {
        self.plannedAt = plannedAt
        self.after = after
    }

    /// When APNs and Fanfare both stop trying. Nil: Fanfare sets no limit.
    ///
    /// - Parameter wave: when the delivery's wave starts; nil: it has none.
    package func moment(wave: Timestamp?) -> Timestamp? {
        after.flatMap { $0 == .zero ? nil : (wave ?? plannedAt) + $0 }
    }

    /// `apns-expiration` in seconds: 0 means one attempt and no storage, nil leaves the header out.
    package func headerSeconds(wave: Timestamp?) -> Int64? {
        after.map { $0 == .zero ? 0 : ((wave ?? plannedAt) + $0).seconds }
    }
}
