package import Model

/// The deliveries of a run by their properties at the freeze, and by the responses of APNs. Each dimension counts every
/// delivery once, so that its counts add up to the audience.
package struct DeliveryBreakdown: Hashable, Sendable {
    /// The raw value is stored.
    package enum Dimension: String, Hashable, Sendable, CaseIterable {
        case appVersion = "app_version"
        case timeZone = "time_zone"
        case country
        /// By the start of the wave, in milliseconds.
        case wave
        /// By the index into the campaign's stages; ``DeliveryBreakdown/rest`` for the last one.
        case stage
        /// By whether each request got a response of APNs: ``DeliveryBreakdown/complete``, ``DeliveryBreakdown/lost``,
        /// or empty if there was no request. A summary of an earlier version does not have this dimension.
        case responses
    }

    package struct Key: Hashable, Sendable {
        package var dimension: Dimension
        /// Empty if the value is not known, or if there is none.
        package var value: String
        package var state: DeliveryState
        package var isLeased: Bool

        package init(_ dimension: Dimension, _ value: String, _ state: DeliveryState, isLeased: Bool = false) {
            self.dimension = dimension
            self.value = value
            self.state = state
            self.isLeased = isLeased
        }
    }

    /// The value of deliveries in the last stage.
    package static let rest = "rest"
    /// The value of a delivery if each of its requests got a response, and if at least one did not.
    package static let complete = "complete"
    package static let lost = "lost"

    package private(set) var counts: [Key: Int] = [:]

    package init() {}

    package mutating func add(_ count: Int, _ key: Key) { counts[key, default: 0] += count }

    /// Returns the counts of those dimensions that `other` has, too.
    func shared(with other: DeliveryBreakdown) -> DeliveryBreakdown {
        let dimensions = Set(other.counts.keys.map(\.dimension))
        var shared = DeliveryBreakdown()
        shared.counts = counts.filter { dimensions.contains($0.key.dimension) }
        return shared
    }

    /// Returns the counts of one dimension, by value.
    package func values(of dimension: Dimension) -> [String: DeliveryCounts] {
        var found: [String: DeliveryCounts] = [:]
        for (key, count) in counts where key.dimension == dimension {
            found[key.value, default: DeliveryCounts()].add(count, key.state, isLeased: key.isLeased)
        }
        return found
    }
}

extension DeliveryCounts {
    package static func + (first: DeliveryCounts, second: DeliveryCounts) -> DeliveryCounts {
        var sum = first
        sum.audience += second.audience
        sum.pending += second.pending
        sum.leased += second.leased
        sum.accepted += second.accepted
        sum.rejected += second.rejected
        sum.unknown += second.unknown
        sum.suppressed += second.suppressed
        return sum
    }

    package mutating func add(_ count: Int, _ state: DeliveryState, isLeased: Bool) {
        audience += count
        switch state {
        case .pending where isLeased: leased += count
        case .pending: pending += count
        case .accepted: accepted += count
        case .rejected: rejected += count
        case .unknown: unknown += count
        case .suppressed: suppressed += count
        }
    }
}

/// Counts rows by profile, wave, stage and responses while they are read. The texts of the profiles are read once, at
/// the end.
struct BreakdownCounter: Hashable {
    private struct Place: Hashable {
        /// -1 if there is none.
        var profile, wave, stage: Int64
        var responses: Responses
        var state: Int64
        var isLeased: Bool

        /// Most places differ in these two, and a hash of all would cost more than the rest of the count.
        func hash(into hasher: inout Hasher) {
            hasher.combine(profile ^ wave << 20)
        }
    }

    private enum Responses: Hashable {
        case none, complete, lost

        init(_ row: DeliveryTally.Row) {
            self = row.doubts > 0 ? .lost : row.attempt > 0 ? .complete : .none
        }

        var value: String {
            switch self {
            case .none: ""
            case .complete: DeliveryBreakdown.complete
            case .lost: DeliveryBreakdown.lost
            }
        }
    }

    /// The delivery is in no stage and no wave, because it was suppressed at the freeze.
    private static let noStage: Int64 = -2
    private static let restStage: Int64 = -1
    private static let frozenOut = Set(FreezePolicy.reasons.map(\.rawValue))

    private var counts: [Place: Int] = [:]

    mutating func add(_ row: DeliveryTally.Row) {
        let isFrozenOut =
            row.stage == nil && row.attempt == 0 && row.state == DeliveryState.suppressed.code
            && row.reason.map(Self.frozenOut.contains) == true
        let place = Place(
            profile: row.profile ?? -1, wave: isFrozenOut ? -1 : row.wave ?? -1,
            stage: row.stage ?? (isFrozenOut ? Self.noStage : Self.restStage), responses: Responses(row),
            state: row.state, isLeased: row.isLeased)
        counts[place, default: 0] += 1
    }

    var profiles: Set<Int64> { Set(counts.keys.map(\.profile).filter { $0 >= 0 }) }

    func finished(_ profiles: [Int64: DeliveryProfile]) -> DeliveryBreakdown {
        var breakdown = DeliveryBreakdown()
        for (place, count) in counts {
            let profile = profiles[place.profile]
            let values: [DeliveryBreakdown.Dimension: String] = [
                .appVersion: profile?.appVersion ?? "", .timeZone: profile?.timeZone ?? "",
                .country: profile?.country ?? "", .wave: place.wave < 0 ? "" : "\(place.wave)",
                .stage: place.stage == Self.noStage
                    ? "" : place.stage == Self.restStage ? DeliveryBreakdown.rest : "\(place.stage)",
                .responses: place.responses.value,
            ]
            for (dimension, value) in values {
                breakdown.add(
                    count, .init(dimension, value, DeliveryState(code: place.state), isLeased: place.isLeased))
            }
        }
        return breakdown
    }
}

extension Report {
    /// The name of the row for unknown values, so that each table adds up to the audience.
    private static let unknown = "not known"

    /// Sets the tables of the breakdown.
    mutating func take(_ breakdown: DeliveryBreakdown) {
        func slices(_ dimension: DeliveryBreakdown.Dimension) -> [Slice] {
            breakdown.values(of: dimension).map {
                Slice(name: $0.key.isEmpty ? Self.unknown : $0.key, counts: $0.value)
            }
            .sorted {
                ($0.name == Self.unknown ? 1 : 0, $1.counts.audience, $0.name)
                    < ($1.name == Self.unknown ? 1 : 0, $0.counts.audience, $1.name)
            }
        }
        byAppVersion = slices(.appVersion)
        byZone = slices(.timeZone)
        byCountry = slices(.country)
        byWave = Self.waves(breakdown.values(of: .wave))
        if let stages = run.definition.campaign.stages {
            byStage = Self.stages(breakdown.values(of: .stage), of: stages)
        }
        take(responses: breakdown.values(of: .responses))
    }

    /// - Parameter values: empty for a summary of an earlier version, and for an empty audience.
    private mutating func take(responses values: [String: DeliveryCounts]) {
        guard !values.isEmpty else { return }
        let lost = values[DeliveryBreakdown.lost] ?? DeliveryCounts()
        let complete = values[DeliveryBreakdown.complete] ?? DeliveryCounts()
        mayHaveArrived = lost.rejected + lost.suppressed
        suppressedAfterRequest = lost.suppressed + complete.suppressed
    }

    /// Returns no slices for a run without waves.
    private static func waves(_ values: [String: DeliveryCounts]) -> [Slice] {
        guard values.keys.contains(where: { !$0.isEmpty }) else { return [] }
        let timed = values.compactMap { value, counts in
            Int64(value).map { (Timestamp(milliseconds: $0), counts) }
        }.sorted { $0.0 < $1.0 }
        return timed.map { Slice(name: $0.iso8601, counts: $1) }
            + values.filter { $0.key.isEmpty }.map { Slice(name: "no wave", counts: $0.value) }
    }

    private static func stages(_ values: [String: DeliveryCounts], of stages: [Stage]) -> [Slice] {
        let last = stages.indices.last ?? 0
        let numbered = stages.indices.compactMap { index -> Slice? in
            let found = [values["\(index)"], index == last ? values[DeliveryBreakdown.rest] : nil].compactMap(\.self)
            guard !found.isEmpty else { return nil }
            return Slice(name: "\(index + 1)", counts: found.reduce(DeliveryCounts(), +))
        }
        return numbered + values.filter { $0.key.isEmpty }.map { Slice(name: "no stage", counts: $0.value) }
    }
}
