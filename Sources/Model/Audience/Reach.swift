/// Who an audience selects at this moment, counted.
package struct Reach: Hashable, Sendable {
    package struct Slice: Hashable, Sendable {
        package var environment: PushEnvironment
        /// As stored with the devices; nil: not known.
        package var locale: String?
        /// Index into the campaign's variants; nil without variants.
        package var variant: Int?
        package var count: Int

        package init(environment: PushEnvironment, locale: String?, variant: Int? = nil, count: Int) {
            self.environment = environment
            self.locale = locale
            self.variant = variant
            self.count = count
        }
    }

    /// Devices of one time zone.
    package struct ZoneSlice: Hashable, Sendable {
        /// As stored with the devices; nil: not known.
        package var zone: String?
        package var count: Int

        package init(zone: String?, count: Int) {
            self.zone = zone
            self.count = count
        }
    }

    /// Devices of one stage.
    package struct StageSlice: Hashable, Sendable {
        package var index: Int
        package var byEnvironment: [PushEnvironment: Int] = [:]
        /// As stored with the devices; empty: not known.
        package var byLocale: [String: Int] = [:]
        package var byZone: [String: Int] = [:]

        package init(index: Int) {
            self.index = index
        }

        package var count: Int { byEnvironment.values.reduce(0, +) }
    }

    /// The devices that frequency caps would hold back.
    package struct CapSlice: Hashable, Sendable {
        /// They wait for a slot, the last of them until ``lastSlotAt``.
        package var waiting = 0
        package var lastSlotAt: Timestamp?
        /// Their slot would come when the push has expired, or the run is late.
        package var leftOut = 0

        package init() {}
    }

    /// Those who would be sent to.
    package var slices: [Slice]
    /// Those the audience selects who would not be, by reason, the holdout among them.
    package var suppressed: [SuppressionReason: Int]
    /// The devices of ``slices`` by time zone, most first.
    package var byZone: [ZoneSlice]
    /// The devices of ``slices`` by variant, in the campaign's order; empty without variants.
    package var byVariant: [Int]
    /// Devices of ``slices`` whose silent budget is used up now: each waits for its slot, or is suppressed if that comes
    /// after it expires. 0 but for background campaigns.
    package var silentBudget: Int
    /// The devices of ``slices`` by stage, those without any left out; empty without stages.
    package var stages: [StageSlice]
    /// Among the devices of ``slices``; nil where no cap was asked about.
    package var caps: CapSlice?

    package init(
        slices: [Slice] = [], suppressed: [SuppressionReason: Int] = [:], byZone: [ZoneSlice] = [],
        byVariant: [Int] = [], silentBudget: Int = 0, stages: [StageSlice] = [], caps: CapSlice? = nil
    ) {
        self.slices = slices
        self.suppressed = suppressed
        self.byZone = byZone
        self.byVariant = byVariant
        self.silentBudget = silentBudget
        self.stages = stages
        self.caps = caps
    }

    package var total: Int { slices.reduce(0) { $0 + $1.count } }

    /// The environments it reaches, in words: `PRODUCTION: 18,812 devices, sandbox: 3 devices`; empty for nobody.
    package var environmentWords: String {
        PushEnvironment.allCases.compactMap { environment in
            let count = slices.reduce(0) { $0 + ($1.environment == environment ? $1.count : 0) }
            return count > 0 ? environment.words(devices: count) : nil
        }.joined(separator: ", ")
    }

    package var holdout: Int { suppressed[.holdout] ?? 0 }
}
