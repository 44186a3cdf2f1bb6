/// The number of devices that an audience selects now, by kind.
package struct Reach: Hashable, Sendable {
    package struct Slice: Hashable, Sendable {
        package var environment: PushEnvironment
        /// As stored with the devices. `nil` if unknown.
        package var locale: String?
        /// An index into the campaign's variants. `nil` without variants.
        package var variant: Int?
        package var count: Int

        package init(environment: PushEnvironment, locale: String?, variant: Int? = nil, count: Int) {
            self.environment = environment
            self.locale = locale
            self.variant = variant
            self.count = count
        }
    }

    /// The number of devices in one time zone.
    package struct ZoneSlice: Hashable, Sendable {
        /// As stored with the devices. `nil` if unknown.
        package var zone: String?
        package var count: Int

        package init(zone: String?, count: Int) {
            self.zone = zone
            self.count = count
        }
    }

    /// The number of devices in one stage.
    package struct StageSlice: Hashable, Sendable {
        package var index: Int
        package var byEnvironment: [PushEnvironment: Int] = [:]
        /// By locale as stored with the devices. The key is empty if the locale is unknown.
        package var byLocale: [String: Int] = [:]
        package var byZone: [String: Int] = [:]

        package init(index: Int) {
            self.index = index
        }

        package var count: Int { byEnvironment.values.reduce(0, +) }
    }

    /// The devices of one time zone that have their turn at one moment.
    package struct Turn: Hashable, Sendable {
        package var startsAt: Timestamp
        /// As stored with the devices. `nil` if unknown.
        package var zone: String?
        package var count: Int

        package init(startsAt: Timestamp, zone: String?, count: Int) {
            self.startsAt = startsAt
            self.zone = zone
            self.count = count
        }
    }

    /// The hours of the devices, in a run with `best_hour`.
    package struct BestHourSlice: Hashable, Sendable {
        /// The app's hour.
        package var usual: BestHour.Choice
        /// The number of opens from which the app's hour was found.
        package var opens: Int
        /// The devices whose opens suffice for an hour of their own. Half of them get the push at that hour.
        package var ownHours: Int
        /// In order of time; among equal times, most devices first.
        package var turns: [Turn]

        package init(usual: BestHour.Choice, opens: Int, ownHours: Int, turns: [Turn]) {
            self.usual = usual
            self.opens = opens
            self.ownHours = ownHours
            self.turns = turns
        }
    }

    /// The devices that frequency caps would hold back.
    package struct CapSlice: Hashable, Sendable {
        /// Devices that wait for a slot. The last slot is at ``lastSlotAt``.
        package var waiting = 0
        package var lastSlotAt: Timestamp?
        /// Devices whose slot would come after the push has expired or the run is late.
        package var leftOut = 0

        package init() {}
    }

    /// The devices that would be sent to.
    package var slices: [Slice]
    /// The devices that the audience selects and that would not be sent to, by reason, including the holdout.
    package var suppressed: [SuppressionReason: Int]
    /// The devices of ``slices`` by time zone, largest zone first.
    package var byZone: [ZoneSlice]
    /// The devices of ``slices`` by variant, in the campaign's order; empty without variants.
    package var byVariant: [Int]
    /// The number of devices of ``slices`` whose silent budget is used up now. Each waits for its slot, or is
    /// suppressed if the slot comes after the push expires. 0 except for background campaigns.
    package var silentBudget: Int
    /// The devices of ``slices`` by stage, without empty stages. Empty if the campaign has no stages.
    package var stages: [StageSlice]
    /// The devices of ``slices`` that caps would hold back. `nil` if no cap was checked.
    package var caps: CapSlice?
    /// `nil` in a run without `best_hour`.
    package var bestHour: BestHourSlice?

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

    /// The reached environments, as text: `PRODUCTION: 18,812 devices, sandbox: 3 devices`. Empty if no device is
    /// reached.
    package var environmentSummary: String {
        PushEnvironment.allCases.compactMap { environment in
            let count = slices.reduce(0) { $0 + ($1.environment == environment ? $1.count : 0) }
            return count > 0 ? environment.summary(devices: count) : nil
        }.joined(separator: ", ")
    }

    package var holdout: Int { suppressed[.holdout] ?? 0 }
}
