package import Model
import Rendering
package import Store

/// The guards of a campaign, by the name of their key.
package enum GuardName: String, Hashable, Sendable, CaseIterable {
    case maxReach = "max_reach"
    case minReach = "min_reach"
    case maxGrowth = "max_growth"
    /// Not a key: a stage for seeds contains no device.
    case seeds
    /// Not a key of the campaign: a template that is for tests.
    case testTemplate = "test_template"
    /// Not a key: no text of the campaign fits into a payload.
    case payload
    /// Not a key: a run of the last hours has the same content, see ``EarlierSend``.
    case repeated = "repeat"

    /// Whether a person may override the guard.
    package var mayBeOverridden: Bool { self != .testTemplate && self != .payload }
}

/// A guard of the campaign that refuses the run, with its figures.
package enum GuardRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case maxReach(reach: Int, limit: Int)
    case minReach(reach: Int, limit: Int)
    /// - Parameter run: the last finished run, which reached `before` devices.
    case maxGrowth(reach: Int, before: Int, run: Int64, limitPercent: Double)
    /// - Parameter stage: from 1.
    case seeds(stage: Int)
    case testTemplate(String)
    /// - Parameter bytes: the size of the smallest payload of all texts.
    case payload(bytes: Int, limit: Int)
    /// - Parameter facts: which run sent the content, see ``EarlierSend/facts(now:)``.
    case repeated(facts: String)

    package var name: GuardName {
        switch self {
        case .maxReach: .maxReach
        case .minReach: .minReach
        case .maxGrowth: .maxGrowth
        case .seeds: .seeds
        case .testTemplate: .testTemplate
        case .payload: .payload
        case .repeated: .repeated
        }
    }

    package var description: String {
        if case .repeated = self { return "\(facts); \(advice)" }
        return "\(facts); \(advice)"
            + (name.mayBeOverridden ? "; --override-guard \(name.rawValue) sends anyway; the override is recorded" : "")
    }

    /// The value that was found, and the value that is allowed.
    package var facts: String {
        switch self {
        case .maxReach(let reach, let limit):
            "the run would reach \(reach.counted("device")); guards.max_reach is \(limit.grouped)"
        case .minReach(let reach, let limit):
            "the run would reach \(reach.counted("device")); guards.min_reach is \(limit.grouped)"
        case .maxGrowth(let reach, let before, let run, let limitPercent):
            "the run would reach \(reach.counted("device")), \(Percent.growth(from: before, to: reach)) than the "
                + "\(before.grouped) of run \(run); guards.max_growth is \(limitPercent.percentText)"
        case .repeated(let facts): facts
        case .seeds(let stage): "stage \(stage) is for seeds, but selects no device"
        case .testTemplate(let name): "template \(name) is for tests (test: true)"
        case .payload(let bytes, let limit):
            "every text is over Apple's limit of \(limit.grouped) bytes: the smallest payload has \(bytes.grouped)"
        }
    }

    private var advice: String {
        switch self {
        case .maxReach: "narrow the audience, or raise max_reach if intended"
        case .minReach: "check the audience expression, the topic and the segments"
        case .maxGrowth: "check what has changed in the audience, its segments or the last import"
        case .seeds:
            "check the stage's expression and segment, or import devices; without seeds the run waits for a person"
        case .payload: "shorten the texts, or the values of the variables: nothing would be sent"
        case .repeated: "change a text or a value, or add --again to send the same content again"
        case .testTemplate: "`fanfare test-send` sends it to one device; to send it to all, remove test: true"
        }
    }

    /// Returns refusals for a template that no run may send, and for texts of which none fits into a payload. Reads
    /// nothing from the store.
    static func check(_ definition: RunDefinition) -> [GuardRefusal] {
        let campaign = definition.campaign
        let used = campaign.variants.isEmpty ? [definition.template] : Array(definition.variantTemplates.values)
        let limit = campaign.pushType.payloadMaxBytes
        let variants: [Int?] = campaign.variants.isEmpty ? [nil] : campaign.variants.indices.map(\.self)
        // Texts that cannot be rendered are refused with their own reason.
        let renderers = try? VariantRenderers(definition)
        let least = variants.compactMap { renderers?[$0].prototypes.map(\.leastByteCount).min() }.min()
        let large = least.flatMap { $0 > limit ? GuardRefusal.payload(bytes: $0, limit: limit) : nil }
        return used.filter { $0.isTest == true }.map(\.name).sorted().prefix(1).map { .testTemplate($0) }
            + [large].compactMap(\.self)
    }

    /// - Parameter previous: the campaign's last finished run.
    static func check(_ campaign: Campaign, _ found: Reach, previous: PreviousRun?) -> [GuardRefusal] {
        let (guards, reach) = (campaign.guards, found.total)
        var refusals: [GuardRefusal] = []
        if let limit = guards.maxReach, reach > limit { refusals.append(.maxReach(reach: reach, limit: limit)) }
        if let limit = guards.minReach, reach < limit { refusals.append(.minReach(reach: reach, limit: limit)) }
        if let limit = guards.maxGrowthPercent, let previous, Percent.exceeds(limit, from: previous.reach, to: reach) {
            refusals.append(
                .maxGrowth(reach: reach, before: previous.reach, run: previous.run.id, limitPercent: limit))
        }
        for (index, stage) in (campaign.stages ?? []).enumerated() where stage.seeds != nil {
            if !found.stages.contains(where: { $0.index == index }) { refusals.append(.seeds(stage: index + 1)) }
        }
        return refusals
    }
}

/// Growth in percent, as guards compare it and people read it.
package enum Percent {
    /// Returns whether `now` is more than `limit` percent above `before`. From zero, any growth is too much.
    static func exceeds(_ limit: Double, from before: Int, to now: Int) -> Bool {
        now > before && Double(now - before) * 100 > limit * Double(before)
    }

    /// Returns whether `now` is more than `limit` percent above or below `before`.
    static func differs(by limit: Double, from before: Int, to now: Int) -> Bool {
        Double(abs(now - before)) * 100 > limit * Double(before)
    }

    /// Returns text such as `16.7 % more` or `4 % fewer`. Returns `more` if `before` is zero.
    package static func growth(from before: Int, to now: Int) -> String {
        let word = now < before ? "fewer" : "more"
        guard before > 0 else { return word }
        return "\((Double(abs(now - before)) * 100 / Double(before)).percentText) \(word)"
    }
}

/// The last finished run of a campaign. Growth and changes are measured against it.
package struct PreviousRun: Hashable, Sendable {
    package var run: Run
    /// The size of the run's audience, less the devices that it left out from the start.
    package var reach: Int

    /// Returns `nil` if no run of the campaign has finished. Test runs do not count.
    package static func find(campaign: String, in store: any RunLog & OutcomeReader) async throws -> PreviousRun? {
        guard let run = try await store.latestRun(campaign: campaign, state: .finished) else { return nil }
        guard run.counts.suppressed > 0 else { return PreviousRun(run: run, reach: run.counts.audience) }
        let report = try await store.report(run.id)
        let leftOut = report.suppressed.count(of: \.isFromTheStart)
        return PreviousRun(run: run, reach: report.counts.audience - leftOut)
    }
}
