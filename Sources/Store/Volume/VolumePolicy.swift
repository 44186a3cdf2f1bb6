package import Foundation
package import Model

/// The rule that decides whether a new run is so much larger than usual that a person must release it first. It is
/// evaluated in the transaction that creates the run, with the records as they are then.
///
/// The usual number is the median over the days with pushes, once for the campaign and once for the actor that starts
/// the run. It covers the same weekday of the previous weeks, or all days if too few of those have pushes. If there
/// are too few days at all, the rule holds nothing. The pushes of today count with the run, both sent and planned
/// ones.
package struct VolumePolicy: Sendable {
    /// A run that was created before.
    package struct Entry: Hashable, Sendable {
        package var at: Timestamp
        /// The number of pushes that were sent or will be sent.
        package var pushes: Int
        /// Whether the audience is not frozen yet. Such a run counts as ``weighed`` if it is from today, and as 0
        /// otherwise. A run that waits for a person is not open: it counts after the person releases it.
        package var isOpen: Bool
        /// The reach when the run was created; `nil` if it counts as much as the run that is checked.
        package var weighed: Int?

        package init(at: Timestamp, pushes: Int, isOpen: Bool = false, weighed: Int? = nil) {
            self.at = at
            self.pushes = pushes
            self.isOpen = isOpen
            self.weighed = weighed
        }
    }

    /// The number of past weeks that are evaluated.
    package static let weeks: Int64 = 8
    /// The minimum number of days for a usual number.
    package static let daysMin = 3
    /// The maximum number of entries of each history and span, newest first. A program that starts more runs in eight
    /// weeks is judged by its last ones.
    package static let entriesMax = 10_000

    private let request: VolumeRequest
    private let now: Timestamp
    private let today: Int64

    package init(_ request: VolumeRequest, now: Timestamp) {
        self.request = request
        self.now = now
        today = Self.day(now, request.zone)
    }

    /// The spans of creation time for which the rule needs the runs: about today, and the time before. Each span has
    /// its own limit, so that today's runs do not crowd out the earlier ones.
    package var spans: [Range<Timestamp>] {
        let day = now - .seconds(86_400)
        return [day..<(now + .seconds(86_400)), (now - .seconds((Self.weeks * 7 + 1) * 86_400))..<day]
    }

    /// Returns why the run waits for a person; `nil` if it may start.
    ///
    /// - Parameters:
    ///   - campaign: the campaign's runs in these spans, without this one.
    ///   - actor: the runs in these spans that the same actor has started.
    package func hold(campaign: [Entry], actor: [Entry]) -> VolumeHold? {
        if let hold = excess(of: request.campaign, campaign) { return hold }
        if let name = request.actor, let hold = excess(of: name, actor) { return hold }
        return growth
    }

    private func excess(of subject: String, _ entries: [Entry]) -> VolumeHold? {
        var sums: [Int64: Int] = [:]
        for entry in entries {
            let day = Self.day(entry.at, request.zone)
            let pushes = entry.isOpen ? (day == today ? entry.weighed ?? request.reach : 0) : entry.pushes
            sums[day, default: 0] += pushes
        }
        let before = sums.removeValue(forKey: today) ?? 0
        let total = before + request.reach
        guard total >= request.brake.atLeast, let usual = usual(sums), total > usual.pushes * request.brake.times
        else { return nil }
        return .excess(
            VolumeHold.Excess(
                subject: subject, reach: request.reach, before: before, usual: usual, times: request.brake.times))
    }

    private func usual(_ sums: [Int64: Int]) -> VolumeHold.Usual? {
        let past = sums.filter { $0.value > 0 && $0.key < today && today - $0.key <= Self.weeks * 7 }
        let alike = past.filter { (today - $0.key).isMultiple(of: 7) }
        if alike.count >= Self.daysMin {
            return VolumeHold.Usual(
                pushes: Self.median(Array(alike.values)), days: alike.count, weekday: Self.weekdays[weekday])
        }
        guard past.count >= Self.daysMin else { return nil }
        return VolumeHold.Usual(pushes: Self.median(Array(past.values)), days: past.count, weekday: nil)
    }

    private var growth: VolumeHold? {
        guard let limit = request.brake.maxGrowthPercent, let last = request.previous else { return nil }
        let more = request.reach - last.reach
        guard request.reach >= request.brake.atLeast, Double(more) * 100 > limit * Double(last.reach) else {
            return nil
        }
        return .growth(reach: request.reach, before: last.reach, run: last.run, limitPercent: limit)
    }

    private static func median(_ values: [Int]) -> Int {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// Day 0 was a Thursday.
    private static let weekdays = [
        "Thursdays", "Fridays", "Saturdays", "Sundays", "Mondays", "Tuesdays", "Wednesdays",
    ]
    private var weekday: Int { Int(((today % 7) + 7) % 7) }

    /// Returns the calendar day of a moment in a zone.
    private static func day(_ moment: Timestamp, _ zone: TimeZone) -> Int64 {
        let seconds = moment.seconds + Int64(zone.secondsFromGMT(for: moment.date))
        return (seconds - ((seconds % 86_400) + 86_400) % 86_400) / 86_400
    }
}

/// A run that is about to be created.
package struct VolumeRequest: Hashable, Sendable {
    /// The campaign's last finished run.
    package struct Previous: Hashable, Sendable {
        package var run: Int64
        package var reach: Int

        package init(run: Int64, reach: Int) {
            self.run = run
            self.reach = reach
        }
    }

    package var brake: Configuration.VolumeBrake
    package var campaign: String
    /// The person or token that starts the run; `nil` for a daemon, which only carries out what people have written.
    package var actor: String?
    package var reach: Int
    package var previous: Previous?
    /// The zone whose days are counted.
    package var zone: TimeZone

    package init(
        brake: Configuration.VolumeBrake, campaign: String, actor: String?, reach: Int, previous: Previous? = nil,
        zone: TimeZone = .gmt
    ) {
        self.brake = brake
        self.campaign = campaign
        self.actor = actor
        self.reach = reach
        self.previous = previous
        self.zone = zone
    }
}

/// The reason why a run waits for a person, with the figures.
package enum VolumeHold: Hashable, Sendable {
    package struct Usual: Hashable, Sendable {
        package var pushes: Int
        /// The number of days in the median.
        package var days: Int
        /// The weekday, for instance `Mondays`; `nil` for all days.
        package var weekday: String?
    }

    package struct Excess: Hashable, Sendable {
        /// The campaign, or the actor that starts it.
        package var subject: String
        package var reach: Int
        /// The number of pushes of today before this run.
        package var before: Int
        package var usual: Usual
        package var times: Int
    }

    case excess(Excess)
    /// - Parameter run: the last finished run, which reached `before` devices.
    case growth(reach: Int, before: Int, run: Int64, limitPercent: Double)

    /// Returns the explanation for the person who decides.
    package func reason(run: Int64) -> String {
        "\(facts); `fanfare resume \(run)` sends it, `fanfare cancel \(run)` ends the run"
    }

    /// The same without the advice.
    package var facts: String {
        switch self {
        case .excess(let excess):
            let usual = excess.usual
            let sum = excess.before + excess.reach
            let total = excess.before > 0 ? ", \(sum.grouped) with today's earlier pushes" : ""
            let days = usual.weekday.map { "on \($0)" } ?? "a day"
            return "would send \(excess.reach.grouped)\(total); usual for \(excess.subject) \(days) is "
                + "\(usual.pushes.grouped) (median of the last \(usual.days)); volume_brake allows "
                + "\(excess.times) times as many"
        case .growth(let reach, let before, let last, let limit):
            return
                "would send \(reach.grouped), and run \(last) reached \(before.grouped); volume_brake allows growth by "
                + limit.percentText
        }
    }
}
