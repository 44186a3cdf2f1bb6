/// Assigns each device of a run's audience to a stage. Call it once per device, in the order of devices.
///
/// Seeds belong to their own stage. Every other device has a bucket from 0 to 9999 by the hash of ``CampaignSplit``,
/// with a separate seed. The shares take the buckets from 0 upwards, so the sample does not depend on age or order.
///
/// A sample may miss a small group of devices, and with it a fault that only this group has. The first share therefore
/// takes additional devices for each combination of environment and language, and for each zone, up to a minimum. The
/// minimum is 1 of 3 devices, 2 of 7, 3 of 15, and so on to 8 of 511.
package struct StageSample: Sendable {
    /// The number of sampled devices at which a group's minimum stops growing.
    private static let sampledMin = 8
    /// The maximum number of languages per environment, and of zones, that are counted separately. A further language
    /// or zone counts as unknown.
    private static let groupsMax = 5_000

    /// The properties of a device that sampling uses besides its environment, as hashes. Hashes are fast enough for
    /// millions of devices, and it is harmless if two languages share a hash.
    package struct Stratum: Hashable, Sendable {
        package var locale, zone: UInt64

        package init(locale: UInt64, zone: UInt64) {
            self.locale = locale
            self.zone = zone
        }

        package init(locale: String?, zone: String?) {
            self.init(locale: locale.map(FNV1a.hash) ?? 0, zone: zone.map(FNV1a.hash) ?? 0)
        }
    }

    private struct Place: Sendable {
        var stratum: Stratum
        var locale, zone: Int
    }

    private static let placesMax = 1024

    private struct Group: Sendable {
        var seen = 0
        var sampled = 0

        /// Whether the sample holds too few of the group's devices. The minimum is the binary logarithm of the next
        /// device's number, rounded down, minus one.
        private var isShort: Bool {
            sampled < min(StageSample.sampledMin, Int.bitWidth - (seen + 1).leadingZeroBitCount - 2)
        }

        mutating func count(_ sampled: Int, _ isShort: inout Bool) {
            seen += 1
            self.sampled += sampled
            if self.isShort { isShort = true }
        }
    }

    private let seed: Int64
    /// For each share, the end of its bucket range, exclusive, and its stage.
    private let ends: [(end: Int64, stage: Int)]
    private let seeds: [(stage: Int, devices: Set<Int64>)]
    private let rest: Int
    private var groups: [Group] = []
    /// The index in ``groups`` of each language of each environment, and of each zone. Key 0 stands for an unknown
    /// value.
    private var byLocale: [[UInt64: Int]] = [[:], [:]]
    private var byZone: [UInt64: Int] = [:]
    /// A cache of the group indices of recent environment, language and zone combinations, by part of their hash.
    private var places: [Place?] = Array(repeating: nil, count: 2 * Self.placesMax)

    /// Returns `nil` if the campaign has no stages.
    ///
    /// - Parameter seeds: the devices of each stage for seeds, in the order of stages.
    package init?(_ campaign: Campaign, seeds: [Set<Int64>]) {
        guard let stages = campaign.stages, stages.count > 1 else { return nil }
        seed = CampaignSplit.seed("stage:" + campaign.name)
        var sum = 0.0
        var ends: [(Int64, Int)] = []
        var seedStages: [Int] = []
        for (index, stage) in stages.enumerated() {
            switch stage.members {
            case .seeds: seedStages.append(index)
            case .share(let percent):
                sum += percent
                ends.append((Int64((min(sum, 100) * 100).rounded()), index))
            case .rest: break
            }
        }
        self.ends = ends
        self.seeds = zip(seedStages, seeds).map { ($0, $1) }
        rest = stages.count - 1
    }

    /// Returns the index of the stage that has the device as a seed; `nil` if the device is no seed.
    package func seedStage(of device: Int64) -> Int? { seeds.first { $0.devices.contains(device) }?.stage }

    /// Returns an index into the campaign's stages.
    package mutating func stage(
        of device: Int64, _ environment: PushEnvironment, _ stratum: Stratum
    ) -> Int {
        if let own = seedStage(of: device) { return own }
        guard let first = ends.first else { return rest }
        let bucket = CampaignSplit.bucket(of: device, seed: seed)
        let drawn = ends.first { bucket < $0.end }?.stage ?? rest
        let isShort = see(environment, stratum, isSampled: drawn == first.stage)
        return isShort ? first.stage : drawn
    }

    /// Counts a device. Returns whether the device must join the first share to meet its group's minimum.
    private mutating func see(_ environment: PushEnvironment, _ stratum: Stratum, isSampled: Bool) -> Bool {
        let (locale, zone) = place(of: stratum, Int(environment.code))
        let added = isSampled ? 1 : 0
        var isShort = false
        groups[locale].count(added, &isShort)
        groups[zone].count(added, &isShort)
        guard isShort, !isSampled else { return false }
        groups[locale].sampled += 1
        groups[zone].sampled += 1
        return true
    }

    private mutating func place(of stratum: Stratum, _ environment: Int) -> (locale: Int, zone: Int) {
        var stratum = stratum
        if byLocale[environment].count >= Self.groupsMax { stratum.locale = 0 }
        if byZone.count >= Self.groupsMax { stratum.zone = 0 }
        let mixed = (stratum.locale ^ (stratum.zone >> 20)) &* 0x9E37_79B9_7F4A_7C15
        let slot = environment * Self.placesMax + Int(mixed % UInt64(Self.placesMax))
        if let known = places[slot], known.stratum == stratum { return (known.locale, known.zone) }
        let found = Place(
            stratum: stratum, locale: Self.index(stratum.locale, in: &byLocale[environment], &groups),
            zone: Self.index(stratum.zone, in: &byZone, &groups))
        places[slot] = found
        return (found.locale, found.zone)
    }

    private static func index(_ hash: UInt64, in known: inout [UInt64: Int], _ groups: inout [Group]) -> Int {
        if let index = known[hash] { return index }
        known[hash] = groups.count
        groups.append(Group())
        return groups.count - 1
    }
}
