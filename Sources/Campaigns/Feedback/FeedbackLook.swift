import Model
import Store

/// A look at a goal. Until the goal's time has passed, a comparison is looked at after 1, 2, 4, 8 and more hours.
///
/// Someone who looks at every figure sees at most ten intervals before the final one. Each of them covers the truth
/// with a probability of 99.5 %, so all of them and the final one together do with at least 90 %.
struct FeedbackLook {
    static let first: Duration = .seconds(3600)
    private static let looksMax = 10
    /// The two-sided 99.5 % quantile of the normal distribution.
    static let earlyZ = 2.807_033_768_343_804

    let goal: FeedbackGoal
    /// Whether the goal's time has passed for all devices.
    let isFinal: Bool
    /// The goal up to this look; `nil` before the first one, and if there will be none.
    let counted: FeedbackGoal?
    /// The time from the start of the run to its end, or until now. It includes all pauses. Zero in a run by each
    /// device's clock.
    let sending: Duration
    /// Whether the time of the goal begins with the start of each device's wave, not of the run.
    let followsClocks: Bool
    /// Why there will be no figures, in words. `nil` if there are or will be some.
    let obstacle: String?
    /// Whether no push of the run can be the last one yet.
    private let isOpen: Bool

    /// - Parameters:
    ///   - waitsForAll: whether the first look comes only when every device has had its turn, because the turns of the
    ///     compared groups differ.
    ///   - prunedAt: when the outcomes of the run by device were pruned. `nil` while they are kept.
    init(
        _ goal: FeedbackGoal, _ run: Run, now: Timestamp, waitsForAll: Bool = false, prunedAt: Timestamp? = nil
    ) {
        self.goal = goal
        isOpen = !run.state.isFinal
        let hasNoAudience = run.state.isFinal && (run.startedAt == nil || run.counts.audience == 0)
        obstacle =
            hasNoAudience
            ? "the run ended before it had an audience, so there are no figures"
            : prunedAt.map {
                "the outcomes by device were pruned on \($0.iso8601.prefix(10)), so there are no figures"
            }
        let spread = Self.spread(run.definition)
        let started = run.startedAt ?? run.createdAt
        let passed = now - started
        let ended = run.finishedAt ?? (run.state.isFinal ? started : now)
        // Each push has the whole time, also the last one of a slow run. Held-out devices have no push, so the time of
        // all devices is longer by that of sending. In a run by each device's clock, it begins with the wave.
        followsClocks = spread > .zero
        sending = followsClocks ? .zero : max(.zero, ended - started)
        isFinal = run.state.isFinal && passed >= goal.within + spread && now - ended >= goal.within
        var counted = goal
        counted.within = goal.within + sending
        if !isFinal {
            counted.within = min(counted.within, Self.latest(at: waitsForAll ? passed - spread : passed) ?? .zero)
        }
        self.counted = counted.within > .zero && run.startedAt != nil && obstacle == nil ? counted : nil
    }

    /// When the first figures come, in words.
    var firstFigures: String {
        let hour = "\(WrittenDuration.text(Self.first)) after the start of the run"
        let within = WrittenDuration.text(goal.within)
        guard !followsClocks, goal.within < Self.first else { return hour }
        if isOpen { return "\(hour), or \(within) after the last push if that is earlier" }
        let time = goal.within + sending
        guard time < Self.first else { return hour }
        return "\(within) after the last push, \(WrittenDuration.text(time)) after the start of the run"
    }

    /// Returns the time from the first wave to the last one. A start by hand has no waves, whatever the schedule says.
    private static func spread(_ definition: RunDefinition) -> Duration {
        guard definition.wall != nil else { return .zero }
        let hours = definition.bestHours.map { Duration.seconds(3600 * ($0.count - 1)) } ?? .zero
        return .seconds(86_400) + hours
    }

    var z: Double { isFinal ? Proportion.z95 : Self.earlyZ }

    /// Returns the latest look at or before a time, or `nil` if there was none.
    static func latest(at time: Duration) -> Duration? {
        guard time >= first else { return nil }
        var look = first
        for _ in 1..<looksMax where look * 2 <= time { look *= 2 }
        return look
    }
}
