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
    private var byLocale: [[String?: Group]] = [[:], [:]]
    private var byZone: [String?: Group] = [:]

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
        of device: Int64, _ environment: PushEnvironment, locale: String?, zone: String?
    ) -> Int {
        if let own = seedStage(of: device) { return own }
        guard let first = ends.first else { return rest }
        let bucket = CampaignSplit.bucket(of: device, seed: seed)
        let drawn = ends.first { bucket < $0.end }?.stage ?? rest
        let isShort = see(environment, locale, zone, isSampled: drawn == first.stage)
        return isShort ? first.stage : drawn
    }

    /// Counts a device; returns whether it has to be in the first share for its group's sake.
    private mutating func see(
        _ environment: PushEnvironment, _ locale: String?, _ zone: String?, isSampled: Bool
    ) -> Bool {
        let place = Int(environment.code)
        let locale = byLocale[place].count < Self.groupsMax ? locale : nil
        let zone = byZone.count < Self.groupsMax ? zone : nil
        let added = isSampled ? 1 : 0
        var isShort = false
        byLocale[place][locale, default: Group()].count(added, &isShort)
        byZone[zone, default: Group()].count(added, &isShort)
        guard isShort, !isSampled else { return false }
        byLocale[place][locale]?.sampled += 1
        byZone[zone]?.sampled += 1
        return true
    }
}
