/// A part of some devices: those that did something, of all of a group.
package struct Proportion: Hashable, Sendable {
    package var count: Int
    package var total: Int

    package init(_ count: Int, of total: Int) {
        self.count = count
        self.total = total
    }

    /// From 0 to 1. `nil` for no devices.
    package var rate: Double? { total > 0 ? Double(count) / Double(total) : nil }

    /// The share in words, such as `16.7 %`. `nil` for no devices.
    package var percentText: String? { rate.map { RoundedShare.percent($0, decimals: 1).percentText } }

    /// The two-sided 95 % quantile of the normal distribution.
    package static let z95 = 1.959_963_984_540_054

    /// Returns the interval of Wilson's score (1927), which also holds for rare events. It is 0 to 1 for no devices.
    package func interval(z: Double = z95) -> ClosedRange<Double> {
        guard total > 0 else { return 0...1 }
        let (size, share, square) = (Double(total), Double(count) / Double(total), z * z)
        let centre = share + square / (2 * size)
        let reach = z * (share * (1 - share) / size + square / (4 * size * size)).squareRoot()
        let scale = 1 + square / size
        // At none and at all, rounding must not exclude the observed share.
        let low = count == 0 ? 0 : max(0, (centre - reach) / scale)
        let high = count == total ? 1 : min(1, (centre + reach) / scale)
        return low...high
    }
}

/// The difference between the shares of two groups, such as treated and held-out devices.
package struct RateDifference: Hashable, Sendable {
    /// The difference of the shares, from -1 to 1.
    package let difference: Double
    /// The interval of Newcombe (1998, method 10), made of Wilson's intervals of both shares.
    package let interval: ClosedRange<Double>

    /// Returns `nil` if a group has no devices.
    package init?(_ first: Proportion, minus second: Proportion, z: Double = Proportion.z95) {
        guard let (firstRate, secondRate) = first.rate.flatMap({ rate in second.rate.map { (rate, $0) } }) else {
            return nil
        }
        let (own, other) = (first.interval(z: z), second.interval(z: z))
        let square = { (value: Double) in value * value }
        let below = (square(firstRate - own.lowerBound) + square(other.upperBound - secondRate)).squareRoot()
        let above = (square(own.upperBound - firstRate) + square(secondRate - other.lowerBound)).squareRoot()
        let difference = firstRate - secondRate
        self.difference = difference
        interval = difference - below...difference + above
    }

    /// Whether the interval leaves out no difference.
    package var isCertain: Bool { !interval.contains(0) }

    /// Returns the smallest difference that a comparison can see: with a probability of 80 %, its interval then leaves
    /// out no difference.
    ///
    /// - Parameters:
    ///   - base: the expected share without the push.
    ///   - z: the quantile of the interval.
    /// - Returns: a difference from 0 to 1, or `nil` if a group has no devices, or too few to show any difference so
    ///   often.
    package static func detectable(
        treated: Int, heldOut: Int, base: Double, z: Double = Proportion.z95
    ) -> Double? {
        guard treated > 0, heldOut > 0, 0...1 ~= base else { return nil }
        return DetectableDifference(treated: treated, heldOut: heldOut, base: base, z: z).value
    }

    /// Returns the same for two groups that have been seen. The base is the share of both together, and never 0: a rare
    /// event that no held-out device had is not one that every holdout can see.
    package static func detectable(_ first: Proportion, _ second: Proportion, z: Double) -> Double? {
        let base = Double(first.count + second.count + 1) / Double(first.total + second.total + 2)
        return detectable(treated: first.total, heldOut: second.total, base: base, z: z)
    }
}
