import Foundation

/// The comparison of several groups, such as the devices of each variant, by the share that did something.
package struct VariantRanking: Hashable, Sendable {
    /// The probability with which equal groups show a winner.
    package static let wrongMax = 0.05

    /// The indices of the groups, the highest share first. Equal shares keep the order of the groups.
    package let order: [Int]
    /// The differences of the best group to each other group in ``order``. `nil` if a group has no devices.
    package let differences: [RateDifference]?

    /// The best group is compared with each other one. It is known only afterwards, so the intervals allow for a
    /// comparison of every two groups: all of them hold with a probability of at least 95 % (Bonferroni).
    ///
    /// - Parameter wrongMax: the probability with which equal groups show a winner. Smaller for one of several looks.
    package init(_ groups: [Proportion], wrongMax: Double = wrongMax) {
        let order = groups.indices.sorted { first, second in
            let (one, other) = (groups[first].rate ?? 0, groups[second].rate ?? 0)
            return one == other ? first < second : one > other
        }
        self.order = order
        guard let best = order.first, groups.allSatisfy({ $0.total > 0 }) else {
            differences = nil
            return
        }
        let z = Self.quantile(ofGroups: groups.count, wrongMax: wrongMax)
        differences = order.dropFirst().compactMap { RateDifference(groups[best], minus: groups[$0], z: z) }
    }

    /// Returns the quantile of each interval of a comparison of this many groups.
    package static func quantile(ofGroups count: Int, wrongMax: Double = wrongMax) -> Double {
        NormalQuantile.twoSided(wrongMax / Double(max(1, count * (count - 1) / 2)))
    }

    /// The difference of the best group to the second one. `nil` if a group has no devices.
    package var closest: RateDifference? { differences?.first }

    /// The indices of the groups that may be as good as the best one, because chance alone may explain the difference.
    /// In the order of ``order``. All but the best one if a group has no devices.
    package var undecided: [Int] {
        let others = order.dropFirst()
        guard let differences else { return Array(others) }
        return zip(others, differences).filter { $0.1.interval.lowerBound <= 0 }.map(\.0)
    }

    /// The index of the best group if every interval shows that it is better. `nil` if chance alone may explain the
    /// differences, or if a group has no devices.
    package var winner: Int? {
        guard let differences, !differences.isEmpty else { return nil }
        return differences.allSatisfy { $0.interval.lowerBound > 0 } ? order.first : nil
    }
}

/// Quantiles of the normal distribution.
package enum NormalQuantile {
    /// Returns the number that the absolute value of a normal variable exceeds with this probability, from 0 to 1.
    package static func twoSided(_ probability: Double) -> Double {
        var (low, high) = (0.0, 40.0)
        // Halving the interval 60 times reaches the precision of the type.
        for _ in 0..<60 {
            let middle = (low + high) / 2
            if tail(middle) > probability { low = middle } else { high = middle }
        }
        return (low + high) / 2
    }

    private static func tail(_ z: Double) -> Double { erfc(z / 2.0.squareRoot()) }
}
