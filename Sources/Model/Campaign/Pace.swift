extension Campaign.Pace {
    /// Of the whole rate, at the start of a ramp.
    private static let rampStart = 0.1
    /// A hundred years: beyond any plan, and within the bounds of a time.
    private static let secondsMax = 3.15e9

    /// Pushes per second, so long after the start: with a ramp a straight line from a tenth of the rate to the whole.
    package func rate(after time: Duration) -> Double {
        guard let ramp = ramp?.inSeconds, ramp > 0 else { return pushesPerSecond }
        let share = min(1, max(0, time.inSeconds / ramp))
        return pushesPerSecond * (Self.rampStart + (1 - Self.rampStart) * share)
    }

    /// How many pushes there is room for from the start up to this moment: the rate summed over the time.
    package func count(within time: Duration) -> Double {
        let seconds = max(0, time.inSeconds)
        let onRamp = min(seconds, max(0, ramp?.inSeconds ?? 0))
        let mean = (rate(after: .zero) + rate(after: time)) / 2
        return onRamp * mean + (seconds - onRamp) * pushesPerSecond
    }

    /// How long so many pushes take; the inverse of ``count(within:)``.
    package func duration(of count: Int) -> Duration {
        let ramp = max(0, ramp?.inSeconds ?? 0)
        let beyond = Double(count) - self.count(within: self.ramp ?? .zero)
        let seconds = beyond >= 0 ? ramp + beyond / pushesPerSecond : secondsOnRamp(Double(count), ramp)
        return .milliseconds(Int64((min(seconds, Self.secondsMax) * 1000).rounded(.up)))
    }

    /// The root of `growth / 2 * t^2 + first * t = count`.
    private func secondsOnRamp(_ count: Double, _ ramp: Double) -> Double {
        let first = pushesPerSecond * Self.rampStart
        let growth = (pushesPerSecond - first) / ramp
        return ((first * first + 2 * growth * count).squareRoot() - first) / growth
    }
}
