package import Model

/// Counts the devices of an audience in one pass; grouping a million rows in a database would sort them first.
///
/// Locales and zones are small numbers that the adapter assigns, from 0. So no text is created per row.
package struct ReachCount {
    private struct Group: Hashable {
        var environment: Int64
        var locale: Int
        var variant: Int?
    }

    private struct Turn: Hashable {
        var startsAt: Timestamp
        var zone: Int
    }

    /// The decision about a device that is reached.
    package struct Variant {
        package let index: Int?
        package let stage: Int?
        /// When its wave starts; `nil` in a run without waves.
        package let wave: Timestamp?
    }

    private var policy: FreezePolicy
    private let variants: Int
    private var groups: [Group: Int] = [:]
    private var byZone: [Int] = []
    private var suppressed: [SuppressionReason: Int] = [:]
    private var overBudget = 0
    private var turns: [Turn: Int] = [:]
    /// Returns the opens of a device, see ``FreezePolicy/opens``. `nil` in a run without `best_hour`.
    private let opens: ((Int64) throws -> [Int64])?
    private var stages: [Int: StageCount] = [:]

    private struct StageCount {
        var byEnvironment: [Int64: Int] = [:]
        var byLocale: [Int: Int] = [:]
        var byZone: [Int: Int] = [:]

        mutating func add(_ environment: Int64, locale: Int, zone: Int) {
            byEnvironment[environment, default: 0] += 1
            byLocale[locale, default: 0] += 1
            byZone[zone, default: 0] += 1
        }
    }

    package init(_ policy: FreezePolicy, variants: Int = 0, opens: ((Int64) throws -> [Int64])? = nil) {
        self.policy = policy
        self.variants = variants
        self.opens = opens
    }

    /// Whether ``decide(device:_:status:alertsAllowed:user:locale:zone:)`` executes statements of its own.
    package var readsOpens: Bool { opens != nil }

    /// Whether a decision needs the device's user.
    package var goesByUser: Bool { policy.goesByUser }

    /// Decides on a device. Returns `nil` for a device that is counted as suppressed. The caller adds all others.
    package mutating func decide(
        device: Int64, _ environment: PushEnvironment, status: DeviceStatus, alertsAllowed: Bool,
        user: () -> String? = { nil }, locale: () -> String?, zone: () -> String?
    ) throws -> Variant? {
        if let opens { policy.opens = try opens(device) }
        let decision = policy.decide(
            device: device, environment, status: status, alertsAllowed: alertsAllowed, user: user, locale: locale,
            zone: zone)
        guard let reason = decision.suppression else {
            return Variant(index: decision.variant, stage: decision.stage, wave: decision.wave)
        }
        suppressed[reason, default: 0] += 1
        return nil
    }

    package mutating func add(
        environment: Int64, locale: Int, zone: Int, _ variant: Variant, isOverBudget: Bool
    ) {
        if let wave = variant.wave, opens != nil { turns[Turn(startsAt: wave, zone: zone), default: 0] += 1 }
        if let stage = variant.stage {
            stages[stage, default: StageCount()].add(environment, locale: locale, zone: zone)
        }
        groups[Group(environment: environment, locale: locale, variant: variant.index), default: 0] += 1
        while zone >= byZone.count { byZone.append(0) }
        byZone[zone] += 1
        if isOverBudget { overBudget += 1 }
    }

    /// - Parameters:
    ///   - locales: the locales by number; `nil` for devices without one.
    ///   - zones: the zones by number; `nil` for devices without one.
    ///   - caps: the forecast of the caps for the devices that were added.
    package func reach(locales: [String?], zones: [String?], caps: Reach.CapSlice? = nil) -> Reach {
        let slices = groups.map { group, count in
            Reach.Slice(
                environment: PushEnvironment(code: group.environment), locale: locales[group.locale],
                variant: group.variant, count: count)
        }
        let zoneSlices = byZone.indices.map { Reach.ZoneSlice(zone: zones[$0], count: byZone[$0]) }
        var byVariant = [Int](repeating: 0, count: variants)
        for slice in slices { if let variant = slice.variant { byVariant[variant] += slice.count } }
        var reach = Reach(
            slices: slices.sorted { Self.key($0) < Self.key($1) }, suppressed: suppressed,
            byZone: zoneSlices.sorted { ($1.count, $0.zone ?? "") < ($0.count, $1.zone ?? "") }, byVariant: byVariant,
            silentBudget: overBudget, stages: stageSlices(locales, zones), caps: caps)
        reach.bestHour = policy.bestHour.map { policy in
            let turns = turns.map { Reach.Turn(startsAt: $0.key.startsAt, zone: zones[$0.key.zone], count: $0.value) }
            return Reach.BestHourSlice(
                usual: policy.usual, opens: policy.curveOpens, ownHours: policy.ownHours,
                turns: turns.sorted {
                    ($0.startsAt, $1.count, $0.zone ?? "") < ($1.startsAt, $0.count, $1.zone ?? "")
                })
        }
        return reach
    }

    private func stageSlices(_ locales: [String?], _ zones: [String?]) -> [Reach.StageSlice] {
        stages.sorted { $0.key < $1.key }.map { index, count in
            var slice = Reach.StageSlice(index: index)
            for (code, devices) in count.byEnvironment { slice.byEnvironment[PushEnvironment(code: code)] = devices }
            for (number, devices) in count.byLocale { slice.byLocale[locales[number] ?? ""] = devices }
            for (number, devices) in count.byZone { slice.byZone[zones[number] ?? ""] = devices }
            return slice
        }
    }

    /// Returns the sort key: the largest count first, then a fixed order.
    private static func key(_ slice: Reach.Slice) -> (Int, String, Int64, Int) {
        (-slice.count, slice.locale ?? "", slice.environment.code, slice.variant ?? -1)
    }
}
