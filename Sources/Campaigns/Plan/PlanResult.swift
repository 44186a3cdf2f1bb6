import Model

/// The stable shape of `plan --json`; keys are written in snake_case, times in ISO 8601 and UTC.
package struct PlanResult: Codable, Hashable, Sendable {
    package struct Language: Codable, Hashable, Sendable {
        /// Absent if the devices' language is not known.
        package var locale: String?
        package var devices: Int
        /// `false` if no text fits, so that these devices get the default text.
        package var covered: Bool
    }

    package struct Block: Codable, Hashable, Sendable {
        package var variant: String?
        package var locale: String
        package var devices: Int
        package var languages: [Language]
        /// The size with empty device fields. If it is over `payload_limit_bytes`, nothing is sent to these devices.
        package var payloadMinBytes: Int
        package var payloadMaxBytes: Int
        package var sample: String
    }

    package struct Zone: Codable, Hashable, Sendable {
        /// Absent if the zone is not known.
        package var zone: String?
        package var devices: Int
    }

    package struct Variant: Codable, Hashable, Sendable {
        package var name: String
        package var template: String
        package var devices: Int
    }

    package struct StageEntry: Codable, Hashable, Sendable {
        /// The number of responses after which this share of refusals would stop the run.
        package struct Notice: Codable, Hashable, Sendable {
            package var percent: Double
            /// Absent if the share is tolerated.
            package var answers: Int?
        }

        /// The number of the stage, from 1.
        package var stage: Int
        package var members: String
        package var devices: Int
        package var byEnvironment: [String: Int]
        /// The devices by language; the name is empty if the language is not known.
        package var byLocale: [String: Int]
        package var byZone: [String: Int]
        package var holdSeconds: Double?
        /// The tolerated share of refusals in percent; absent for the stage of all remaining devices.
        package var tolerate: Double?
        package var needsApproval: Bool
        /// The number of responses, all without a refusal, after which the stage may pass; absent for the stage of all
        /// remaining devices.
        package var answersNeeded: Int?
        package var notices: [Notice]
        /// The stage in words.
        package var summary: String
        /// The lowest share of opens with which the next stage begins, in percent of the usual one; absent if the stage
        /// does not compare its opens.
        package var opensAtLeast: Double?
        /// How the stage decides which variant the rest gets; absent in a stage that decides on none.
        package var decides: Decides?

        package struct Decides: Codable, Hashable, Sendable {
            package struct Share: Codable, Hashable, Sendable {
                package var variant: String
                package var devices: Int
            }

            /// `opens` or `conversion`.
            package var by: String
            /// `wait` for a person, or `first` for the first variant.
            package var undecided: String
            package var variants: [Share]
            /// The smallest difference that the comparison can show, in percentage points, if 5 % do it. Absent if a
            /// variant goes to no device.
            package var detectable: Double?
        }
    }

    package struct WaveEntry: Codable, Hashable, Sendable {
        package var startsAt: String
        package var devices: Int
        /// Most devices first; empty in a run that does not follow each device's clock.
        package var zones: [String]
        package var pushesPerSecond: Double?
        /// `pace` for the campaign's own pace, `last_run` for the speed of the last run.
        package var basis: String?
        package var rampSeconds: Double?
        package var endsAt: String?
        /// Devices whose turn would come after `expires_after`.
        package var expired: Int
    }

    package struct Silent: Codable, Hashable, Sendable {
        package var limit: Int
        package var windowSeconds: Double
        package var usedUp: Int
        package var allCanWait: Bool
    }

    package struct Capped: Codable, Hashable, Sendable {
        /// The caps that name the campaign's class, such as `3 in 24h per user (news)`.
        package var caps: [String]
        /// Devices that would wait for a slot.
        package var waiting: Int
        /// The time at which the last of them would have a slot; absent if no device waits.
        package var lastSlotAt: String?
        /// The devices whose slot would come after the push has expired or is late.
        package var leftOut: Int
    }

    /// The devices that are in quiet hours when their turn comes.
    package struct Quiet: Codable, Hashable, Sendable {
        /// Devices that get the push after their quiet hours.
        package var waiting: Int
        /// The time at which the last of them gets it; absent if no device waits.
        package var lastEndAt: String?
        /// Devices that get nothing: the policy is `drop`, or the push expires first.
        package var leftOut: Int
        /// Devices that get nothing because their time zone is unknown; absent if there are none.
        package var unknownZone: Int?
    }

    package struct Difference: Codable, Hashable, Sendable {
        package struct Change: Codable, Hashable, Sendable {
            package var variant: String?
            package var locale: String?
            package var key: String?
            package var kind: String
        }

        package var run: Int64
        package var finishedAt: String?
        package var reachBefore: Int
        package var texts: [Change]
        package var variables: [String]
        package var campaignKeys: [String]
    }

    /// A run that has just sent, or still sends, the same content.
    package struct SentBefore: Codable, Hashable, Sendable {
        package var run: Int64
        package var occurrence: String
        package var state: String
        package var createdAt: String
        package var summary: String
    }

    package struct Refusal: Codable, Hashable, Sendable {
        package var name: String
        package var message: String
    }

    /// The value for `run --plan`; absent while a variable has no value.
    package var plan: String?
    package var campaign: String
    package var template: String
    package var audience: String
    package var audienceSql: String?
    package var headers: [String: String]
    package var reach: Int
    /// The devices that the audience selects, including those that are left out.
    package var selected: Int
    package var byEnvironment: [String: Int]
    /// The reached devices by environment in words, such as `PRODUCTION: 18,812 devices`, for a person who is about to
    /// start the run; empty if no device is reached.
    package var sentTo: String
    /// The reached devices in an environment that the app has no key for; absent if there are none.
    package var withoutKey: [String: Int]?
    /// The devices that the audience would select, by the other topic that they are registered under; absent if there
    /// are none.
    package var otherTopics: [String: Int]?
    /// Absent if any device is reached.
    package var nobodyReached: EmptyReach?
    package var byZone: [Zone]
    package var byVariant: [Variant]
    /// Absent in a campaign without stages.
    package var stages: [StageEntry]?
    package var suppressed: [String: Int]
    package var silentBudget: Silent?
    /// Absent if no frequency cap names the campaign's class.
    package var frequencyCaps: Capped?
    package var inQuietHours: Int
    /// Absent in a campaign without quiet hours.
    package var quietHours: Quiet?
    /// The local time at which each device has its turn; absent if all devices have their turn at one moment.
    package var localTime: String?
    package var waves: [WaveEntry]
    package var texts: [Block]
    package var payloadLimitBytes: Int
    /// Absent if no run of the campaign has finished yet.
    package var sinceLastRun: Difference?
    /// The guards that would refuse the run, in words.
    package var refusals: [String]
    /// The refusing guards that a person may override, by name, for `--override-guard`.
    package var refusedGuards: [Refusal]
    /// The reason why the run would be created paused and wait for a person's `resume`; absent if it would not.
    package var volumeBrake: String?
    /// The signatures that the run needs, or the reason why no signature suffices; absent if it needs none.
    package var approval: String?
    /// The hours of the devices, in words, and the wave with the most devices; absent without `best_hour`.
    package var bestHour: String?
    package var surge: String?
    /// What the run will tell about people; absent for a campaign without feedback and holdout.
    package var feedback: String?
    /// The empty segments that the audience excludes; absent if there are none.
    package var emptyExclusions: [String]?
    /// The probable mistakes in the texts with the given values; absent if there are none.
    package var lint: [String]?
    /// Absent if no run of the last hours has the same content, or if the schedule sends it.
    package var sentBefore: SentBefore?
    /// The variables that must be given to `run`.
    package var unsetVariables: [String]

    package init(_ plan: Plan, unset: [String]) {
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
        sentTo = plan.reach.environmentSummary
        otherTopics = plan.otherTopics.map { other in
            Dictionary(other.found.map { ($0.name, $0.devices) }) { $0 + $1 }
        }
        nobodyReached = plan.emptyReach
        if !plan.keyless.isEmpty {
            withoutKey = Dictionary(plan.keyless.map { ($0.environment.rawValue, $0.devices) }) { $0 + $1 }
        }
        byZone = plan.reach.byZone.map { Zone(zone: $0.zone, devices: $0.count) }
        byVariant = plan.variants.map { Variant(name: $0.name, template: $0.template, devices: $0.devices) }
        stages = plan.stages.isEmpty ? nil : plan.stages.map(StageEntry.init)
        suppressed = Dictionary(plan.reach.suppressed.map { ($0.key.rawValue, $0.value) }) { $0 + $1 }
        silentBudget = plan.silentBudget.map(Silent.init)
        frequencyCaps = plan.capped.map { capped in
            Capped(
                caps: capped.caps.map(\.summary), waiting: capped.devices.waiting,
                lastSlotAt: capped.devices.lastSlotAt?.iso8601, leftOut: capped.devices.leftOut)
        }
        inQuietHours = plan.quiet.map { $0.waiting + $0.suppressed } ?? 0
        quietHours = plan.quiet.map {
            Quiet(
                waiting: $0.waiting, lastEndAt: $0.lastEnd?.iso8601, leftOut: $0.suppressed,
                unknownZone: $0.unknownZone > 0 ? $0.unknownZone : nil)
        }
        localTime = definition.wall?.description
        waves = plan.waves.map(WaveEntry.init)
        texts = plan.blocks.map(Block.init)
        payloadLimitBytes = plan.payloadLimitBytes
        sinceLastRun = plan.difference.map(Difference.init)
        refusals = plan.refusals.map(\.description)
        refusedGuards = plan.refusals.filter(\.name.mayBeOverridden).map {
            Refusal(name: $0.name.rawValue, message: $0.facts)
        }
        volumeBrake = plan.brake
        approval = plan.approval
        feedback = plan.feedbackSummary
        bestHour = plan.bestHourSummary
        surge = plan.surgeSummary
        emptyExclusions = plan.emptyExclusions.isEmpty ? nil : plan.emptyExclusions
        lint = plan.lint.isEmpty ? nil : plan.lint
        sentBefore = plan.earlier.map { earlier in
            SentBefore(
                run: earlier.run.id, occurrence: earlier.run.occurrence, state: earlier.run.state.rawValue,
                createdAt: earlier.run.createdAt.iso8601, summary: earlier.facts(now: plan.madeAt))
        }
        unsetVariables = unset
    }
}

extension PlanResult.Block {
    fileprivate init(_ block: Plan.Block) {
        self.init(
            variant: block.variant, locale: block.locale, devices: block.devices,
            languages: block.languages.map { .init(locale: $0.tag, devices: $0.devices, covered: $0.isCovered) },
            payloadMinBytes: block.payloadMinBytes, payloadMaxBytes: block.payloadMaxBytes, sample: block.sample)
    }
}

extension PlanResult.StageEntry {
    fileprivate init(_ stage: PlannedStage) {
        self.init(
            stage: stage.number, members: stage.stage.summary, devices: stage.devices.count,
            byEnvironment: Dictionary(
                stage.devices.byEnvironment.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: +),
            byLocale: stage.devices.byLocale, byZone: stage.devices.byZone,
            holdSeconds: stage.stage.hold?.inSeconds,
            tolerate: stage.isRest ? nil : stage.stage.tolerated * 100, needsApproval: stage.stage.needsApproval,
            answersNeeded: stage.isRest ? nil : stage.answersNeeded,
            notices: stage.notices.map { Notice(percent: $0.percent, answers: $0.answers) },
            summary: stage.summary.joined(separator: "; "), opensAtLeast: stage.stage.opensAtLeastPercent,
            decides: stage.stage.decides.map { rule in
                Decides(
                    by: rule.by.rawValue, undecided: rule.undecided.rawValue,
                    variants: stage.byVariant.map { Decides.Share(variant: $0.name, devices: $0.devices) },
                    detectable: stage.detectable.map(PercentagePoints.points))
            })
    }
}

extension PlanResult.WaveEntry {
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

extension PlanResult.Silent {
    fileprivate init(_ silent: SilentForecast) {
        self.init(
            limit: silent.budget.limit, windowSeconds: silent.budget.window.inSeconds, usedUp: silent.usedUp,
            allCanWait: silent.allCanWait)
    }
}

extension PlanResult.Difference {
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
