package import Model
package import Rendering
package import Store

/// Plans a campaign for a person: the next occurrence, or the requested one. Variables without a value show their
/// names.
package struct PlanCampaign: Sendable {
    package struct Planned: Sendable {
        package var plan: Plan
        /// The variables without a value.
        package var unset: [String]
        /// The occurrence of the campaign's schedule, by its key; `nil` for a run of this moment.
        package var occurrence: String?

        package var result: PlanResult { PlanResult(plan, unset: unset) }
    }

    private let planner: Planner
    private let keyed: Set<PushEnvironment>
    private let store: any RunLog & DeviceRegistry & OutcomeReader & OccurrenceValueLog
    private let brake: Configuration.VolumeBrake?
    private let approvals: ApprovalRules?

    /// - Parameter topic: the campaign's topic. If the configuration contains its app, the app gives the silent budget,
    ///   the frequency caps, and the environments that have a key.
    package init(
        store: any RunLog & DeviceRegistry & OutcomeReader & OccurrenceValueLog, configuration: Configuration,
        topic: String
    ) {
        let app = configuration.appIfKnown(for: topic)
        planner = Planner(
            store: store, budget: app?.silentBudget, caps: app?.frequencyCaps ?? [],
            approvals: configuration.approvals,
            pace: .slowest(configuration.pace, app?.pace))
        self.store = store
        keyed = app?.credential.environments ?? Set(PushEnvironment.allCases)
        brake = configuration.volumeBrake
        approvals = configuration.approvals
    }

    /// - Parameters:
    ///   - typed: the variables whose values the caller gives. At a start of the schedule, all others have the values
    ///     that a person gave for it. `nil` if the plan shows exactly the values of the definition.
    ///   - occurrence: the occurrence of the campaign's schedule; `nil` for the next one.
    ///   - isNow: whether to plan a start now, whatever the schedule says.
    ///   - actor: the person who would start the run, whose usual volume counts for the brake; `nil` for the daemon.
    package func plan(
        _ given: RunDefinition, typed: Set<String>? = [], occurrence: String?, isNow: Bool, by actor: Actor? = nil,
        now: Timestamp
    ) async throws -> Planned {
        let found = try Self.occurrence(of: given, occurrence, isNow, now)
        var definition = given
        if let found, let typed {
            definition = try await store.definition(given, typed: typed, occurrence: found.key)
        }
        let (shown, unset) = (found.map { definition.planned(for: $0) } ?? definition).filledForShow()
        var plan = try await planner.plan(shown, now: now)
        plan.keyless = KeylessDevices.all(in: plan.reach, keyed: keyed)
        if plan.selected == 0 {
            plan.otherTopics = try await TopicMismatch.selected(by: definition.campaign, in: store, now: now)
        }
        plan.emptyReach = try await EmptyReach.of(plan, in: store, now: now)
        // The volume brake does not apply to a plan that people sign.
        if approvals?.rule(forReach: plan.reach.total) == nil,
            let request = try await VolumeRequest.weighing(
                definition.campaign, reach: plan.reach.total, brake, by: actor, in: store)
        {
            plan.brake = try await store.volumeHold(request, now: max(now, shown.plannedAt))?.facts
        }
        plan.approval = approvals?.summary(forReach: plan.reach.total)
        let exclusions = definition.campaign.audience.expression.segmentsLeftOut
        if !exclusions.isEmpty {
            plan.emptyExclusions = try await store.segments(now: now).filter { $0.count == 0 }.map(\.name)
                .filter(exclusions.contains)
        }
        plan.lint = unset.isEmpty ? shown.lintOfValues().map(\.description) : []
        if found == nil, unset.isEmpty { plan.earlier = try await EarlierSend.find(shown, in: store, now: now) }
        return Planned(plan: plan, unset: unset, occurrence: found?.key)
    }

    private static func occurrence(
        of definition: RunDefinition, _ occurrence: String?, _ isNow: Bool, _ now: Timestamp
    ) throws -> Occurrence? {
        let timetable = definition.campaign.schedule.flatMap(Timetable.init)
        if let occurrence {
            guard let found = timetable?.occurrence(named: occurrence) else {
                throw Failure(
                    .notFound,
                    "the schedule of \(definition.campaign.name) has no occurrence \(occurrence); `fanfare schedule` lists "
                        + "the next occurrences")
            }
            return found
        }
        return isNow ? nil : timetable?.next(after: now)
    }
}

/// Determines which devices would get which push, without sending anything.
package struct Planner: Sendable {
    /// The length in bytes that is assumed for a device field when the largest payload is computed.
    package static let fieldMaxBytes = 100

    private let store: any RunLog & DeviceRegistry & OutcomeReader
    private let budget: Configuration.SilentBudget?
    private let caps: [FrequencyCap]
    private let approvals: ApprovalRules?
    private let pace: Campaign.Pace?

    /// - Parameters:
    ///   - budget: the app's silent budget, to forecast its effect on background pushes; `nil` for no forecast.
    ///   - caps: the app's frequency caps, to forecast their effect on alerts.
    ///   - approvals: the configured rules. They name the folder of a prepared correction, which is part of the plan's
    ///     digest.
    ///   - pace: the slowest pace that the run shares with others; `nil` for no limit.
    package init(
        store: any RunLog & DeviceRegistry & OutcomeReader, budget: Configuration.SilentBudget? = nil,
        caps: [FrequencyCap] = [], approvals: ApprovalRules? = nil, pace: Campaign.Pace? = nil
    ) {
        self.pace = pace
        self.approvals = approvals
        self.store = store
        self.budget = budget
        self.caps = caps
    }

    /// Returns the plan. Reads the whole device table once, and writes nothing.
    package func plan(_ definition: RunDefinition, now: Timestamp) async throws -> Plan {
        let campaign = definition.campaign
        let renderers = try VariantRenderers(definition)
        let budget = campaign.pushType == .background ? budget : nil
        let waves = RecipientWaves(definition, startedAt: max(now, definition.plannedAt))
        let preview = CapPreview(definition, caps: caps, now: now)
        let reach = try await store.reach(of: campaign, budget: budget, caps: preview, waves: waves, now: now)
        let previous = try await PreviousRun.find(campaign: campaign.name, in: store)
        let digest = try await PlanDigest(of: definition, occurrence: "", in: store, approvals)
        return Plan(
            definition: definition, madeAt: now, reach: reach, variants: Self.shares(campaign, reach),
            blocks: PlanBlocks(campaign, renderers, reach).blocks, payloadLimitBytes: campaign.pushType.payloadMaxBytes,
            headers: Plan.Header.all(definition),
            waves: Wave.all(definition, reach, waves, previous: previous, sharing: pace),
            stages: PlannedStage.all(definition, reach, waves),
            silentBudget: SilentForecast(campaign, budget, usedUp: reach.silentBudget),
            capped: CappedForecast(preview, reach),
            quiet: QuietForecast(definition, reach, waves),
            difference: try previous.map { try RunDifference(from: $0, to: definition, reach: reach.total) },
            token: try PlanToken(definition, reach: reach.total, digest: digest.text), digest: digest.text,
            refusals: GuardRefusal.check(definition) + GuardRefusal.check(campaign, reach, previous: previous))
    }

    private static func shares(_ campaign: Campaign, _ reach: Reach) -> [Plan.VariantShare] {
        campaign.variants.enumerated().map { index, variant in
            Plan.VariantShare(
                name: variant.name, template: variant.template,
                devices: index < reach.byVariant.count ? reach.byVariant[index] : 0)
        }
    }
}

/// The texts with the devices that get each of them.
struct PlanBlocks {
    let blocks: [Plan.Block]

    init(_ campaign: Campaign, _ renderers: VariantRenderers, _ reach: Reach) {
        let variants: [Int?] = campaign.variants.isEmpty ? [nil] : campaign.variants.indices.map(\.self)
        blocks = variants.flatMap { variant in
            Self.blocks(
                renderers[variant], Self.languages(reach, variant, campaign),
                variant: variant.map { campaign.variants[$0].name })
        }
    }

    /// A device whose variant a stage decides may get each variant.
    private static func languages(
        _ reach: Reach, _ variant: Int?, _ campaign: Campaign
    ) -> [(tag: String?, devices: Int)] {
        let mayBeAny = campaign.decidingStage != nil
        var counts: [String?: Int] = [:]
        for slice in reach.slices where slice.variant == variant || mayBeAny && slice.variant == nil {
            counts[slice.locale, default: 0] += slice.count
        }
        return counts.map { ($0.key, $0.value) }.sorted { ($1.devices, $0.tag ?? "") < ($0.devices, $1.tag ?? "") }
    }

    private static func blocks(
        _ renderer: PayloadRenderer, _ languages: [(tag: String?, devices: Int)], variant: String?
    ) -> [Plan.Block] {
        var found = [[Plan.Language]](repeating: [], count: renderer.prototypes.count)
        for language in languages {
            let prototype = renderer.choice(forLocale: language.tag).prototype
            found[prototype].append(
                Plan.Language(
                    tag: language.tag, devices: language.devices,
                    isCovered: renderer.covers(language.tag)))
        }
        return renderer.prototypes.indices.map { index in
            Plan.Block(
                variant: variant, locale: renderer.localeName(index),
                devices: found[index].reduce(0) { $0 + $1.devices }, languages: found[index],
                payloadMinBytes: renderer.prototypes[index].leastByteCount,
                payloadMaxBytes: renderer.prototypes[index].worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes),
                sample: renderer.sample(index))
        }
    }
}

extension PayloadRenderer {
    /// Returns a payload for a person to read. Device fields show their own names, and a badge count shows 1.
    package func sample(_ prototype: Int) -> String {
        let fields = fields.map { Optional("<\($0.templateName)>") }
        return String(decoding: prototypes[prototype].payload(fields: fields, badge: 1), as: UTF8.self)
    }
}
