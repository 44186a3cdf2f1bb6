/// Which devices of a campaign are held out, and which variant each of the others gets: the same in every run of the
/// campaign, whatever else is in the audience.
///
/// Each device has a bucket from 0 to 9999 for each seed. One line of SQL repeats it, with `seed` from
/// `run_view.holdout_seed` or `run_view.variant_seed`:
///
///     SELECT id, (((seed * id + 1103515245) % 2147483647 * id + seed) % 2147483647 * id + 1013904223) % 2147483647 % 10000 AS bucket
///
/// A polynomial of the third degree modulo the prime 2^31 - 1: buckets of different devices, and of one device in
/// different campaigns, are close to independent, so that shares differ from the asked ones by sampling error only. SQLite computes it in 64-bit integers without overflow for ids below 2^31.
///
/// In a campaign with `dedupe: user` a device that has a user is split by the user's number in place of its own, see
/// ``number(of:user:)``: all devices of one user are in the holdout or none, and get one variant.
///
/// Held out are the buckets below `holdout` in hundredths of a percent (2% is 0 to 199). The others get the first
/// variant whose summed weights, as a share of 10000 rounded down, are above their variant bucket. Holdout and variant use
/// different seeds, so that they are independent of each other.
package struct CampaignSplit: Hashable, Sendable {
    package static let bucketCount: Int64 = 10_000
    private static let prime: Int64 = 2_147_483_647
    /// Larger weights make no difference to shares of 10000; sums of these cannot overflow.
    private static let weightMax = 1_000_000

    package let holdoutSeed: Int64
    package let variantSeed: Int64
    /// Buckets below this one are held out.
    private let heldOutBelow: Int64
    /// The first bucket that is no longer the variant's; empty without variants.
    private let variantEnds: [Int64]
    private let isByUser: Bool

    package init(_ campaign: Campaign) {
        holdoutSeed = Self.seed("holdout:" + campaign.name)
        variantSeed = Self.seed("variant:" + campaign.name)
        let share = ((campaign.holdoutPercent ?? 0) * 100).rounded()
        heldOutBelow = share.isFinite ? Int64(min(max(share, 0), Double(Self.bucketCount))) : 0
        isByUser = campaign.dedupe == .user
        let weights = campaign.variants.map { Int64(min(max($0.weight, 0), Self.weightMax)) }
        let total = weights.reduce(0, +)
        var sum: Int64 = 0
        variantEnds = weights.map { weight in
            sum += weight
            return total == 0 ? Self.bucketCount : sum * Self.bucketCount / total
        }
    }

    /// True when the result is the same for every device: no holdout and no variants.
    package var isTrivial: Bool { heldOutBelow == 0 && variantEnds.isEmpty }

    /// What a device is split by, in place of `device`: for those with a user, where the campaign goes by users, the
    /// FNV-1a of the user's id without its top bit.
    package func number(of device: Int64, user: String?) -> Int64 {
        guard isByUser, let user, !user.isEmpty else { return device }
        return Int64(FNV1a.hash(user) & 0x7FFF_FFFF_FFFF_FFFF)
    }

    package func isHeldOut(_ device: Int64) -> Bool {
        heldOutBelow > 0 && Self.bucket(of: device, seed: holdoutSeed) < heldOutBelow
    }

    /// Index into the campaign's variants; nil without variants. Says nothing about the holdout.
    package func variant(of device: Int64) -> Int? {
        guard !variantEnds.isEmpty else { return nil }
        let bucket = Self.bucket(of: device, seed: variantSeed)
        return variantEnds.firstIndex { bucket < $0 } ?? variantEnds.count - 1
    }

    /// From 0 to 9999.
    package static func bucket(of device: Int64, seed: Int64) -> Int64 {
        let id = device % prime
        let first = (seed * id + 1_103_515_245) % prime
        let second = (first * id + seed) % prime
        return (second * id + 1_013_904_223) % prime % bucketCount
    }

    /// Below 2^31 - 1.
    package static func seed(_ text: String) -> Int64 {
        let hash = FNV1a.hash(text)
        return Int64((hash ^ (hash >> 32)) & 0x7FFF_FFFF) % prime
    }
}
