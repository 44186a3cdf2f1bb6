/// Which stage of a run each device of the audience is in: asked once per device, in order of device.
///
/// Seeds are in theirs. The others have a bucket from 0 to 9999 by the hash of ``CampaignSplit`` with a seed of its own, and the
/// shares take the buckets from 0 on: a sample that knows nothing of age or order. A sample may miss those of whom there
/// are few, and with them a fault that only they meet; so the first share takes more of each environment with each
/// language, and of each zone, as long as it has fewer than asked: at least 1 of 3, 2 of 7, 3 of 15, and so on to 8 of
/// 511.
package struct StageSample: Sendable {
    /// At least so many of each environment with each language, and of each zone.
    private static let sampledMin = 8
    /// Devices of this many languages and zones are told apart; above that they report anything but those.
    private static let groupsMax = 5_000

    /// What a sample asks about a device besides its environment, as hashes: it is asked for each of millions, and a group
    /// that two languages share is no harm.
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

        /// Whether too few of those seen are in the sample: the logarithm of the next one's number, less one, would do.
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
    /// For each share, the bucket behind its last one, and its stage.
    private let ends: [(end: Int64, stage: Int)]
    private let seeds: [(stage: Int, devices: Set<Int64>)]
    private let rest: Int
    private var groups: [Group] = []
    /// Where in ``groups`` each language of each environment stands, and each zone; 0 is for those of whom it is not known.
    private var byLocale: [[UInt64: Int]] = [[:], [:]]
    private var byZone: [UInt64: Int] = [:]
    /// The same of those that were seen together, by a part of their hash.
    private var places: [Place?] = Array(repeating: nil, count: 2 * Self.placesMax)

    /// Nil where the campaign has no stages.
    ///
    /// - Parameter seeds: the devices of each stage that is for seeds, in order.
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

    /// Index of the stage whose seed the device is; nil: it is none.
    package func seedStage(of device: Int64) -> Int? { seeds.first { $0.devices.contains(device) }?.stage }

    /// Index into the campaign's stages.
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

    /// Counts a device; returns whether it has to be in the first share for its group's sake.
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
