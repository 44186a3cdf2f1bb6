import Foundation
package import Model

/// Decides at which hour each device of a run with `best_hour` has its turn.
///
/// Half of the devices, by ``CampaignSplit/getsOwnHour(_:)``, have it at their own hour. The other half has it at the
/// app's hour, so that the report can tell whether own hours help.
package struct BestHourPolicy {
    private struct Place: Hashable {
        var zone: String?
        var hour: Int
    }

    /// The maximum number of cached zones. There are fewer real zones, so further values are invalid.
    private static let zonesMax = 5_000

    private let waves: RecipientWaves
    private let hours: BestHour
    private let split: CampaignSplit
    private var clocks: ZoneClocks
    private var turns: [Place: RecipientWaves.Turn] = [:]
    /// The devices whose opens suffice for an hour of their own, in either half.
    package private(set) var ownHours = 0

    /// - Parameters:
    ///   - clocks: the clocks with which `curve` was counted.
    ///   - curve: the opens of the app's devices.
    package init?(_ campaign: Campaign, _ waves: RecipientWaves, _ clocks: ZoneClocks, curve: HourCounts) {
        guard let hours = waves.band.flatMap({ BestHour(band: $0, curve: curve) }) else { return nil }
        self.waves = waves
        self.hours = hours
        self.clocks = clocks
        split = CampaignSplit(campaign)
    }

    /// The app's hour.
    package var usual: BestHour.Choice { hours.usual }
    /// The number of opens from which the app's hour was found.
    package var curveOpens: Int { hours.curve.total }

    /// - Parameters:
    ///   - number: the number that the device is split by.
    ///   - opens: the device's opens, as quarters of an hour since 1970.
    mutating func turn(of number: Int64, opens: [Int64], inZone zone: String?) -> RecipientWaves.Turn {
        var choice = hours.usual
        if opens.count >= BestHour.opensMin {
            let own = hours.choice(clocks.counts(opens, inZone: zone))
            if own.basis == .own { ownHours += 1 }
            if split.getsOwnHour(number) { choice = own }
        }
        let place = Place(zone: zone, hour: choice.hour)
        if let known = turns[place] { return known }
        let turn = waves.turn(inZone: zone, hour: choice.hour)
        if turns.count < Self.zonesMax { turns[place] = turn }
        return turn
    }
}

/// The clocks of the zones of devices, during the time whose opens count.
package struct ZoneClocks {
    private let waves: RecipientWaves
    /// The time whose opens count.
    package let span: Range<Timestamp>
    private var hours: [String?: LocalHours?] = [:]

    package init(_ waves: RecipientWaves) {
        self.waves = waves
        span = waves.startedAt - BestHour.history..<waves.startedAt
    }

    /// Returns the opens by hour of the day. A device whose zone is unknown, and for which the campaign assumes none,
    /// has no hours.
    ///
    /// - Parameter quarters: quarters of an hour since 1970.
    package mutating func counts(_ quarters: [Int64], inZone zone: String?) -> HourCounts {
        var counts = HourCounts()
        add(quarters, inZone: zone, to: &counts)
        return counts
    }

    package mutating func add(_ quarters: [Int64], inZone zone: String?, to counts: inout HourCounts) {
        let known = hours[zone] ?? waves.zone(named: zone).map { LocalHours($0, during: span) }
        hours[zone] = .some(known)
        guard let known else { return }
        for quarter in quarters { counts.add(at: known.hour(atMs: quarter * BestHour.quarterMs)) }
    }
}
