/// The split of a campaign's devices into the holdout and the variants. The split is the same in every run of the
/// campaign, whatever else is in the audience.
///
/// Each device has a bucket from 0 to 9999 for each seed. This SQL computes it, with `seed` from
/// `run_view.holdout_seed` or `run_view.variant_seed`:
///
///     SELECT id, (((seed * id + 1103515245) % 2147483647 * id + seed) % 2147483647 * id + 1013904223)
///         % 2147483647 % 10000 AS bucket
///
/// The formula is a polynomial of the third degree modulo the prime 2^31 - 1. Buckets of different devices, and of one
/// device in different campaigns, are close to independent. Actual shares therefore differ from the requested ones by
/// sampling error only. SQLite computes it in 64-bit integers without overflow for ids below 2^31.
///
/// In a campaign with `dedupe: user`, a device that has a user is split by the user's number instead of its own id, see
/// ``number(of:user:)``. All devices of one user are in the holdout or none, and all get the same variant.
///
/// The buckets below `holdout`, in hundredths of a percent, are held out (2% is 0 to 199). Every other device gets the
/// first variant whose summed weights exceed the device's variant bucket. The sums are shares of 10000, rounded down.
/// Holdout and variant use different seeds, so that they are independent of each other.
///
/// In a campaign with `best_hour`, the devices with a bucket below 5000 for ``bestHourSeed`` get the push at their own
/// hour, and the others at the app's hour. `report --format json` has the seed as `feedback.best_hour.seed`.
package struct CampaignSplit: Hashable, Sendable {
    package static let bucketCount: Int64 = 10_000
    private static let prime: Int64 = 2_147_483_647
    /// The cap on a weight. Larger weights do not change shares of 10000, and sums of capped weights cannot overflow.
    private static let weightMax = 1_000_000

    package let holdoutSeed: Int64
    package let variantSeed: Int64
    package let bestHourSeed: Int64
    /// Devices with a bucket below this one are held out.
    private let heldOutBelow: Int64
    /// The end of each variant's bucket range, exclusive. Empty without variants.
    private let variantEnds: [Int64]
    private let isByUser: Bool
    private let hasBestHour: Bool

    package init(_ campaign: Campaign) {
        holdoutSeed = Self.seed("holdout:" + campaign.name)
        variantSeed = Self.seed("variant:" + campaign.name)
        bestHourSeed = Self.seed("best_hour:" + campaign.name)
        hasBestHour = campaign.schedule?.bestHour != nil
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

    /// Whether the split does nothing: no holdout, no variants and no best hour.
    package var isTrivial: Bool { heldOutBelow == 0 && variantEnds.isEmpty && !hasBestHour }

    /// Returns the number that a device is split by. If the campaign splits by user and the device has a user, it is
    /// the user's number, and otherwise `device`. The user's number is the FNV-1a of the user's id without its top
    /// bit.
    package func number(of device: Int64, user: String?) -> Int64 {
        guard isByUser, let user, !user.isEmpty else { return device }
        return Int64(FNV1a.hash(user) & 0x7FFF_FFFF_FFFF_FFFF)
    }

    package func isHeldOut(_ device: Int64) -> Bool {
        heldOutBelow > 0 && Self.bucket(of: device, seed: holdoutSeed) < heldOutBelow
    }

    /// Returns an index into the campaign's variants, or `nil` without variants. The result ignores the holdout.
    package func variant(of device: Int64) -> Int? {
        guard !variantEnds.isEmpty else { return nil }
        let bucket = Self.bucket(of: device, seed: variantSeed)
        return variantEnds.firstIndex { bucket < $0 } ?? variantEnds.count - 1
    }

    /// Returns whether a device of a campaign with `best_hour` gets the push at its own hour. The result ignores the
    /// holdout.
    package func getsOwnHour(_ device: Int64) -> Bool {
        Self.bucket(of: device, seed: bestHourSeed) < Self.bucketCount / 2
    }

    /// Returns a bucket from 0 to 9999.
    package static func bucket(of device: Int64, seed: Int64) -> Int64 {
        let id = device % prime
        let first = (seed * id + 1_103_515_245) % prime
        let second = (first * id + seed) % prime
        return (second * id + 1_013_904_223) % prime % bucketCount
    }

    /// Returns a seed below 2^31 - 1.
    package static func seed(_ text: String) -> Int64 {
        let hash = FNV1a.hash(text)
        return Int64((hash ^ (hash >> 32)) & 0x7FFF_FFFF) % prime
    }
}
