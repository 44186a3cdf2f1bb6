import Model
import Campaigns

/// The stable shape of `plan --json`; keys are written in snake_case, times in ISO 8601 and UTC.
struct PlanJSON: Encodable {
    struct Language: Encodable {
        /// Absent: the devices' language is not known.
        var locale: String?
        var devices: Int
        /// False when no text fits and these devices get the default one.
        var covered: Bool
    }

    struct Block: Encodable {
        var variant: String?
        var locale: String
        var devices: Int
        var languages: [Language]
        var payloadMaxBytes: Int
        var sample: String
    }

    struct Zone: Encodable {
        /// Absent: not known.
        var zone: String?
        var devices: Int
    }

    struct Variant: Encodable {
        var name: String
        var template: String
        var devices: Int
    }

    struct WaveEntry: Encodable {
        var startsAt: String
        var devices: Int
        /// Most devices first; empty in a run that does not follow each device's clock.
        var zones: [String]
        var pushesPerSecond: Double?
        /// `pace`: the campaign's own; `last_run`: measured then.
        var basis: String?
        var rampSeconds: Double?
        var endsAt: String?
        /// Devices whose turn would come after `expires_after`.
        var expired: Int
    }

    struct Silent: Encodable {
        var limit: Int
        var windowSeconds: Double
        var usedUp: Int
        var allCanWait: Bool
    }

    struct Difference: Encodable {
        struct Change: Encodable {
            var variant: String?
            var locale: String?
            var key: String?
            var kind: String
        }

        var run: Int64
        var finishedAt: String?
        var reachBefore: Int
        var texts: [Change]
        var variables: [String]
        var campaignKeys: [String]
    }

    struct Refusal: Encodable {
        var name: String
        var message: String
    }

    /// To be given to `run --plan`; absent while variables have no value.
    var plan: String?
    var campaign: String
    var template: String
    var audience: String
    var audienceSql: String?
    var headers: [String: String]
    var reach: Int
    /// With those left out.
    var selected: Int
    var byEnvironment: [String: Int]
    var byZone: [Zone]
    var byVariant: [Variant]
    var suppressed: [String: Int]
    var silentBudget: Silent?
    var inQuietHours: Int
    /// By each device's clock; absent when the turn of all is at one moment.
    var localTime: String?
    var waves: [WaveEntry]
    var texts: [Block]
    var payloadLimitBytes: Int
    /// Absent: no run of the campaign has finished yet.
    var sinceLastRun: Difference?
    /// Guards that would refuse the run, in words.
    var refusals: [String]
    /// The same by name, for `--override-guard`.
    var refusedGuards: [Refusal]
    /// Variables that must be given to `run`.
    var unsetVariables: [String]

    init(_ plan: Plan, unset: [String]) {
        let definition = plan.definition
        self.plan = unset.isEmpty ? plan.token.description : nil
        campaign = definition.campaign.name
        template = definition.campaign.template
        audience = definition.campaign.audience.source
        audienceSql = definition.campaign.audienceSQL
        headers = Dictionary(plan.headers.map { ($0.name, $0.value) }) { first, _ in first }
        reach = plan.reach.total
        selected = plan.selected
        byEnvironment = Dictionary(plan.byEnvironment.map { ($0.environment.rawValue, $0.count) }) { $0 + $1 }
        byZone = plan.reach.byZone.map { Zone(zone: $0.zone, devices: $0.count) }
        byVariant = plan.variants.map { Variant(name: $0.name, template: $0.template, devices: $0.devices) }
        suppressed = Dictionary(plan.reach.suppressed.map { ($0.key.rawValue, $0.value) }) { $0 + $1 }
        silentBudget = plan.silentBudget.map(Silent.init)
        inQuietHours = plan.quiet.map { $0.waiting + $0.suppressed } ?? 0
        localTime = definition.wall?.description
        waves = plan.waves.map(WaveEntry.init)
        texts = plan.blocks.map(Block.init)
        payloadLimitBytes = plan.payloadLimitBytes
        sinceLastRun = plan.difference.map(Difference.init)
        refusals = plan.refusals.map(\.description)
        refusedGuards = plan.refusals.map { Refusal(name: $0.name.rawValue, message: $0.facts) }
        unsetVariables = unset
    }
}

extension PlanJSON.Block {
    fileprivate init(_ block: Plan.Block) {
        self.init(
            variant: block.variant, locale: block.locale, devices: block.devices,
            languages: block.languages.map { .init(locale: $0.tag, devices: $0.devices, covered: $0.isCovered) },
            payloadMaxBytes: block.payloadMaxBytes, sample: block.sample)
    }
}

extension PlanJSON.WaveEntry {
    fileprivate init(_ wave: Wave) {
        let basis: String? =
            switch wave.basis {
            case .pace: "pace"
            case .lastRun: "last_run"
            case nil: nil
            }
        self.init(
            startsAt: wave.startsAt.iso8601, devices: wave.devices, zones: wave.zones,
            pushesPerSecond: wave.rate, basis: basis,
            rampSeconds: wave.ramp?.inSeconds, endsAt: wave.endsAt?.iso8601, expired: wave.lateDevices)
    }
}

extension PlanJSON.Silent {
    fileprivate init(_ silent: SilentForecast) {
        self.init(
            limit: silent.budget.limit, windowSeconds: silent.budget.window.inSeconds, usedUp: silent.usedUp,
            allCanWait: silent.allCanWait)
    }
}

extension PlanJSON.Difference {
    fileprivate init(_ difference: RunDifference) {
        self.init(
            run: difference.run.id, finishedAt: difference.run.finishedAt?.iso8601,
            reachBefore: difference.reachBefore,
            texts: difference.texts.map {
                Change(variant: $0.variant, locale: $0.locale, key: $0.key, kind: $0.kind.rawValue)
            },
            variables: difference.variables, campaignKeys: difference.keys)
    }
}
