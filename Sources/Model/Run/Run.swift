/// One occurrence of a campaign, with its definition frozen.
package struct Run: Hashable, Sendable {
    package var id: Int64
    package var campaign: String
    /// Unique with the campaign: timer, daemon, person and a retried call all mean the same run.
    package var occurrence: String
    package var definition: RunDefinition
    package var state: RunState
    /// Why it is paused or failed, in words for a person.
    package var stateReason: String?
    package var counts: DeliveryCounts
    /// False while the audience is still being written down.
    package var isFrozen: Bool
    /// Sent to one device by hand to look at it; kept out of campaign reports.
    package var isTest: Bool
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The process that sends it; nil when none does.
    package var owner: String?
    /// When the owner was last heard of.
    package var heartbeatAt: Timestamp?
    /// The person who paused it and whom it waits for; nil where it paused itself.
    package var pausedBy: String?
    /// What a paused run met, where it paused itself.
    package var halt: RunHalt?

    package init(
        id: Int64, campaign: String, occurrence: String, definition: RunDefinition, state: RunState,
        stateReason: String? = nil, counts: DeliveryCounts = DeliveryCounts(), isFrozen: Bool = false,
        isTest: Bool = false, createdAt: Timestamp, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil,
        owner: String? = nil, heartbeatAt: Timestamp? = nil, pausedBy: String? = nil, halt: RunHalt? = nil
    ) {
        self.id = id
        self.campaign = campaign
        self.occurrence = occurrence
        self.definition = definition
        self.state = state
        self.stateReason = stateReason
        self.counts = counts
        self.isFrozen = isFrozen
        self.isTest = isTest
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.owner = owner
        self.heartbeatAt = heartbeatAt
        self.pausedBy = pausedBy
        self.halt = halt
    }
}

/// Everything a run needs that must not change under it: kept in the store as JSON, with its hash.
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

    package init(
        campaign: Campaign, template: Template, variantTemplates: [String: Template] = [:],
        variables: [String: String], plannedAt: Timestamp, wall: WallTime? = nil
    ) {
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

/// Why a run paused itself.
package enum RunHalt: String, Hashable, Sendable, Codable, CaseIterable {
    case unreachable, credential, breaker
}

package enum RunState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Created, not yet begun. Goes to `running`, `paused`, `cancelled`, `failed` or `missed`.
    case scheduled
    /// Freezing, sending or waiting. Goes to `paused`, `finished`, `cancelled` or `failed`.
    case running
    /// Stopped by a person or a breaker. Goes to `running`, `cancelled` or `failed`, and to `finished` when the last
    /// outcomes were on their way.
    case paused
    /// Every delivery has an end state. Final.
    case finished
    /// Stopped for good by a person; the rest is `suppressed(cancelled)`. Final.
    case cancelled
    /// Could not be carried out. Final.
    case failed
    /// Found later than `late_by_max`, not sent. Final.
    case missed
}

extension RunState {
    /// True when nothing will ever happen to the run again.
    package var isFinal: Bool {
        switch self {
        case .finished, .cancelled, .failed, .missed: true
        case .scheduled, .running, .paused: false
        }
    }
}
