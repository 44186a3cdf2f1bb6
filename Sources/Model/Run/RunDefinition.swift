/// The inputs of a run that must not change while it is in progress. They are frozen when the run is created.
///
/// It is stored as JSON with a hash of that text. A run that an older Fanfare created must stay readable, so no coding
/// key here or in the contained types ever changes. SQL reads `campaign.topic`, `campaign.pushType` and
/// `campaign.variants[n].name` from the JSON. Unlabelled associated values of enum cases are stored under `_0`, `_1`.
package struct RunDefinition: Hashable, Sendable, Codable {
    @Shared package var campaign: Campaign
    @Shared package var template: Template
    /// The templates by variant name. Empty if the campaign has no variants.
    package var variantTemplates: [String: Template]
    /// The campaign's default values, combined with the values given at the start.
    package var variables: [String: String]
    package var plannedAt: Timestamp
    /// The local time at which each device's turn comes. `nil` if all devices have their turn at ``plannedAt``.
    package var wall: WallTime?
    /// The audience of another run that this run corrects, in place of the campaign's audience.
    package var correction: Correction?

    /// The version of the stored form, written as `version`. A definition without the key has version 1. A later
    /// version is refused, because its meaning is unknown.
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

    /// Returns the same definition for an occurrence of the campaign's schedule.
    package func planned(for occurrence: Occurrence) -> RunDefinition {
        var definition = self
        definition.plannedAt = occurrence.startsAt
        definition.wall = occurrence.isByEachClock ? occurrence.wall : nil
        return definition
    }

    /// Returns the template of a variant's deliveries.
    ///
    /// - Parameter index: the variant. `nil` for a delivery without a variant.
    package func template(ofVariant index: Int?) -> Template {
        guard let index, campaign.variants.indices.contains(index) else { return template }
        return variantTemplates[campaign.variants[index].name] ?? template
    }

    /// The hours of the day at which devices have their turn, in a run of a campaign with `best_hour`. `nil` for any
    /// other run, and for one that a person started outside the schedule.
    package var bestHours: Range<Int>? {
        wall.flatMap { campaign.schedule?.bestHour?.band(from: $0) }
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
                debugDescription: "run definition of version \(version); this Fanfare supports up to \(Self.version)")
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
    /// Whether the run's pushes wait for the device's silent budget, and count against it. A recall does neither,
    /// because a wrong alert stays on the screen while the recall waits.
    package var goesBySilentBudget: Bool { campaign.pushType == .background && correction?.kind != .recall }
}

/// A correction of another run. Its audience is exactly the devices that the other run reached or may have reached.
package struct Correction: Hashable, Sendable, Codable {
    /// The correction's effect on the other run's notifications.
    package enum Kind: String, Hashable, Sendable, Codable {
        /// Replaces the text on the screen, through the same collapse id.
        case replace
        /// Removes the notification from the screen. The app must support it.
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

/// The delivery deadline of a run: its planned time plus `expires_after`. In a run with waves, each wave has its own
/// deadline: the start of the wave plus `expires_after`.
package struct Expiry: Hashable, Sendable {
    package var plannedAt: Timestamp
    /// `nil` if Fanfare sets no limit. Zero means one attempt, not stored by APNs.
    package var after: Duration?

    package init(plannedAt: Timestamp, after: Duration?) {
        self.plannedAt = plannedAt
        self.after = after
    }

    /// Returns the time at which APNs and Fanfare both stop trying. `nil` if Fanfare sets no limit.
    ///
    /// - Parameter wave: the start of the delivery's wave. `nil` if it has none.
    package func moment(wave: Timestamp?) -> Timestamp? {
        after.flatMap { $0 == .zero ? nil : (wave ?? plannedAt) + $0 }
    }

    /// Returns `apns-expiration` in seconds. 0 means one attempt and no storage. `nil` omits the header.
    package func headerSeconds(wave: Timestamp?) -> Int64? {
        after.map { $0 == .zero ? 0 : ((wave ?? plannedAt) + $0).seconds }
    }
}
