import Campaigns
import Foundation
import Hummingbird
import Model

/// The calendar: the automatic starts of each day, and the clock that each follows.
struct CalendarPages: Sendable {
    private static let weeksShown = 3
    private static let weeksMax = 5

    let cases: UseCases

    var routes: [PageRoute] { [.get("/calendar", .read, show).readingTexts] }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let today = cases.zone.wall(at: cases.now).day
        let weeks =
            request.query("weeks").flatMap { Int64($0) }.map { min(max($0, 1), Int64(Self.weeksMax)) }
            ?? Int64(Self.weeksShown)
        let asked = request.query("from").flatMap { WallTime($0) }?.day ?? today
        // Weeks begin on Monday.
        let first = CivilDay(number: asked.number - Int64((asked.weekday + 6) % 7))
        let last = CivilDay(number: first.number + weeks * 7 - 1)
        let result = try await cases.coming([], from: first, through: last, sees: caller.sees)
        let problems = caller.topic == nil ? cases.schedule().problems : []
        var page = CalendarPage(
            result, first: first, weeks: weeks, today: today,
            wrong: problems.map { ($0.path as NSString).lastPathComponent })
        page.changes = try await cases.changes(for: caller).map {
            .init(address: "/changes#change-\($0.id)", summary: $0.summary)
        }
        return try request.page(.calendar, title: "Calendar", page)
    }
}

/// The weeks of the calendar. Each day lists what starts on it.
struct CalendarPage: Sendable {
    struct Entry: Sendable {
        var campaign: String
        var address: String
        /// The time on each device's clock or on the operator's clock, such as `09:00`.
        var time: String
        var clock: String?
        /// The range of starts on the operator's clock, if each device's clock decides. Otherwise the time in the
        /// campaign's zone, if it differs.
        var detail: String?
        /// The effect of a clock change, such as summer time, on the entry.
        var change: String?
        /// The reason why the run will fail.
        var failure: String?
        var isPast: Bool
    }

    struct Day: Sendable {
        var date: String
        var label: String
        var weekday: String
        var isToday: Bool
        var isPast: Bool
        var isEmpty: Bool
        var entries: [Entry]
        /// The number of entries left out, for each campaign: `and 283 more of tick`.
        var more: [String]
    }

    struct Choice: Sendable {
        var weeks: Int64
        var address: String
        var isCurrent: Bool
    }

    struct Halted: Sendable {
        var run: Int64
        var campaign: String
        var reason: String
    }

    /// The maximum number of entries shown for one campaign on one day.
    private static let entriesShown = 4

    var zone: String
    var from: String
    var to: String
    var days: [Day]
    var isEmpty: Bool
    var choices: [Choice]
    var before: String
    var after: String
    var halted: [Halted]
    var isTruncated: Bool
    /// The names of files that start nothing, because they contain errors.
    var wrong: [String]
    /// The changes to files that wait for release.
    var changes: [CampaignPage.Waiting] = []
    var weekdays: [String]

    init(_ schedule: ScheduleResult, first: CivilDay, weeks: Int64, today: CivilDay, wrong: [String]) {
        let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        zone = schedule.zone
        from = Self.date(first)
        to = Self.date(CivilDay(number: first.number + weeks * 7 - 1))
        let byDay = Dictionary(grouping: schedule.occurrences) { entry in
            String((entry.byEachClock ? entry.occurrence : entry.startsAtLocal).prefix(10))
        }
        days = (0..<weeks * 7).map { offset in
            let day = CivilDay(number: first.number + offset)
            return Day(
                day, weekday: names[Int(offset % 7)], today: today, byDay[Self.date(day), default: []],
                now: schedule.now, zone: TimeZone(identifier: schedule.zone) ?? .gmt, shown: Self.entriesShown)
        }
        isEmpty = schedule.occurrences.isEmpty
        choices = [2, 3, 4, 5].map {
            Choice(weeks: $0, address: "/calendar?from=\(Self.date(first))&weeks=\($0)", isCurrent: $0 == weeks)
        }
        before = "/calendar?from=\(Self.date(CivilDay(number: first.number - weeks * 7)))&weeks=\(weeks)"
        after = "/calendar?from=\(Self.date(CivilDay(number: first.number + weeks * 7)))&weeks=\(weeks)"
        halted = schedule.halted.map {
            Halted(run: $0.run, campaign: $0.campaign, reason: $0.stateReason ?? $0.halt ?? "")
        }
        isTruncated = schedule.truncated ?? false
        self.wrong = wrong
        weekdays = names
    }

    static func date(_ day: CivilDay) -> String { String(WallTime(day).description.prefix(10)) }
}

extension CalendarPage.Day {
    fileprivate init(
        _ day: CivilDay, weekday: String, today: CivilDay, _ found: [ScheduleResult.Entry], now: String, zone: TimeZone,
        shown: Int
    ) {
        date = CalendarPage.date(day)
        let parts = day.date
        label = parts.day == 1 ? "\(parts.day) \(Self.months[Int(parts.month) - 1])" : "\(parts.day)"
        self.weekday = weekday
        isToday = day == today
        isPast = day < today
        isEmpty = found.isEmpty
        entries = []
        more = []
        let sorted = found.sorted { ($0.wallTime, $0.campaign) < ($1.wallTime, $1.campaign) }
        let counts = Dictionary(grouping: sorted, by: \.campaign).mapValues(\.count)
        var seen: [String: Int] = [:]
        for entry in sorted {
            seen[entry.campaign, default: 0] += 1
            if seen[entry.campaign, default: 0] <= shown { entries.append(.init(entry, now: now, zone: zone)) }
        }
        more = counts.filter { $0.value > shown }.sorted { $0.key < $1.key }
            .map { "and \(($0.value - shown).grouped) more of \($0.key)" }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}

extension CalendarPage.Entry {
    /// - Parameter zone: the operator's time zone.
    fileprivate init(_ entry: ScheduleResult.Entry, now: String, zone: TimeZone) {
        let last = zone.wall(at: WrittenMoment.parse(entry.lastStartsAt) ?? Timestamp(milliseconds: 0))
        campaign = entry.campaign
        address = CampaignPage.address(entry.campaign)
        time = ClockSummary.time(entry.wallTime)
        clock = entry.byEachClock ? "each device’s clock" : nil
        if entry.byEachClock {
            detail = "\(Self.short(entry.startsAtLocal)) to \(Self.short(last.description)) here"
        } else {
            let wall = ClockSummary.time(entry.occurrence)
            detail = wall == time ? nil : "\(wall) in \(entry.zone)"
        }
        change = entry.clockChanges.map { ClockSummary.summary($0, at: entry) }
        isPast = entry.lastStartsAt < now
        failure = isPast ? nil : entry.failure
    }

    /// Returns `03-28 09:00` for `2027-03-28T09:00`.
    private static func short(_ wall: String) -> String { String(wall.dropFirst(5)).replacing("T", with: " ") }
}

extension ScheduleResult.Entry {
    /// The time that determines the entry's day: on each device's clock, or on the operator's clock.
    fileprivate var wallTime: String { byEachClock ? occurrence : startsAtLocal }
}
