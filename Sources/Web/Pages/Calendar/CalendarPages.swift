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
        let zone = request.frame.chosenZone
        let today = (zone ?? cases.zone).wall(at: cases.now).day
        let weeks =
            request.query("weeks").flatMap { Int64($0) }.map { min(max($0, 1), Int64(Self.weeksMax)) }
            ?? Int64(Self.weeksShown)
        let asked = request.query("from").flatMap { WallTime($0) }?.day ?? today
        // Weeks begin on Monday.
        let first = CivilDay(number: asked.number - Int64((asked.weekday + 6) % 7))
        let last = CivilDay(number: first.number + weeks * 7 - 1)
        let result = try await cases.coming([], from: first, through: last, in: zone, sees: caller.sees)
        let (past, isCut) = first <= today ? try await past(first, through: last, for: caller) : ([:], false)
        let problems = caller.topic == nil ? cases.schedule().problems : []
        var page = CalendarPage(
            result, past: past, first: first, weeks: weeks, today: today,
            wrong: problems.map { ($0.path as NSString).lastPathComponent })
        page.isTruncated = page.isTruncated || isCut
        page.markStopped(by: request.frame.stops.compactMap { StopOrder.Scope($0.scope) })
        page.changes = try await cases.changes(for: caller).map {
            .init(address: ChangesPage.address(of: $0.id), summary: $0.summaryOnPage)
        }
        return try request.page(.calendar, title: "Calendar", page)
    }

    /// Returns the runs of the days that the calendar shows, by campaign and occurrence. A past start of a schedule
    /// without a run did not happen: the campaign or its schedule is newer.
    ///
    /// The runs are the first ``pastRunsMax`` from the first day on. Those after the last day are among them, because a
    /// late start is created later than planned. `isCut` is whether these do not reach the last day.
    private func past(
        _ first: CivilDay, through last: CivilDay, for caller: Caller
    ) async throws -> (runs: [CalendarPage.Start: Run], isCut: Bool) {
        // A start by each device's clock begins up to a day before its date here.
        let margin: Duration = .seconds(2 * 86_400)
        let from = WrittenMoment.parse(CalendarPage.date(first)).map { $0 - margin }
        let search = RunSearch(RunFilter(createdFrom: from), topic: caller.topic)
        let found = try await cases.found(search, at: .after(0), limit: Self.pastRunsMax)
        let starts = found.runs.map { (CalendarPage.Start(campaign: $0.campaign, occurrence: $0.occurrence), $0) }
        let reached = (found.stoppedAt ?? found.runs.first)?.createdAt
        let end = WrittenMoment.parse(CalendarPage.date(last)).map { $0 + margin }
        let isCut = found.newer != nil && reached.map { reached in end.map { reached < $0 } ?? true } ?? true
        return (Dictionary(starts) { first, _ in first }, isCut)
    }

    /// The maximum number of runs that are matched with past starts.
    private static let pastRunsMax = 500
}

/// The weeks of the calendar. Each day lists what starts on it.
struct CalendarPage: Sendable {
    /// A start of a campaign, as its run names it.
    struct Start: Hashable, Sendable {
        var campaign: String
        var occurrence: String
    }

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
        /// The page where a person gives the start its values, if it lacks some or has its own.
        var valuesAddress: String?
        /// The values that a person gave for the start, in one line.
        var values: String?
        var isPast: Bool
        /// The state of the run, if the start is over.
        var state: String?
        /// Whether a stop keeps the campaign from starting.
        var isStopped = false
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
        /// The same, by campaign.
        private var leftOut: [String: Int]
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

    init(
        _ schedule: ScheduleResult, past: [Start: Run] = [:], first: CivilDay, weeks: Int64, today: CivilDay,
        wrong: [String]
    ) {
        let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        zone = ViewerZone.name(of: TimeZone(identifier: schedule.zone) ?? .gmt)
        from = Self.date(first)
        to = Self.date(CivilDay(number: first.number + weeks * 7 - 1))
        let shown = schedule.occurrences.filter { $0.lastStartsAt >= schedule.now || past[$0.start] != nil }
        let byDay = Dictionary(grouping: shown) { entry in
            String((entry.byEachClock ? entry.occurrence : entry.startsAtLocal).prefix(10))
        }
        days = (0..<weeks * 7).map { offset in
            let day = CivilDay(number: first.number + offset)
            return Day(
                day, weekday: names[Int(offset % 7)], today: today, byDay[Self.date(day), default: []], past,
                now: schedule.now, zone: TimeZone(identifier: schedule.zone) ?? .gmt, shown: Self.entriesShown)
        }
        isEmpty = false
        choices = [2, 3, 4, 5].map {
            Choice(weeks: $0, address: "/calendar?from=\(Self.date(first))&weeks=\($0)", isCurrent: $0 == weeks)
        }
        before = "/calendar?from=\(Self.date(CivilDay(number: first.number - weeks * 7)))&weeks=\(weeks)"
        after = "/calendar?from=\(Self.date(CivilDay(number: first.number + weeks * 7)))&weeks=\(weeks)"
        halted = schedule.halted.map {
            Halted(run: $0.run, campaign: $0.campaign, reason: ($0.stateReason ?? $0.halt ?? "").onPage)
        }
        isTruncated = schedule.truncated ?? false
        self.wrong = wrong
        weekdays = names
        let scheduled = Set(schedule.occurrences.map(\.start))
        for run in past.values where run.isBroadcast && !scheduled.contains(run.start) { add(run, in: schedule) }
        isEmpty = days.allSatisfy(\.isEmpty)
    }

    /// Adds a broadcast that no schedule started to its day.
    private mutating func add(_ run: Run, in schedule: ScheduleResult) {
        let wall = (TimeZone(identifier: schedule.zone) ?? .gmt).wall(at: run.createdAt)
        guard let index = days.firstIndex(where: { $0.date == Self.date(wall.day) }) else { return }
        let entry = Entry(run, at: ClockSummary.time(wall.description))
        let place = days[index].entries.firstIndex { $0.time > entry.time } ?? days[index].entries.endIndex
        let known = days[index].entries.count { $0.campaign == entry.campaign }
        if known < Self.entriesShown {
            days[index].entries.insert(entry, at: place)
        } else {
            days[index].leaveOut(1, of: entry.campaign)
        }
        days[index].isEmpty = false
    }

    /// Marks the future starts that a stop prevents.
    fileprivate mutating func markStopped(by scopes: [StopOrder.Scope]) {
        for day in days.indices {
            for index in days[day].entries.indices where !days[day].entries[index].isPast {
                let campaign = days[day].entries[index].campaign
                days[day].entries[index].isStopped = scopes.contains(.all) || scopes.contains(.campaign(campaign))
            }
        }
    }

    static func date(_ day: CivilDay) -> String { String(WallTime(day).description.prefix(10)) }
}

extension CalendarPage.Day {
    fileprivate init(
        _ day: CivilDay, weekday: String, today: CivilDay, _ found: [ScheduleResult.Entry],
        _ past: [CalendarPage.Start: Run], now: String, zone: TimeZone, shown: Int
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
        leftOut = [:]
        let sorted = found.sorted { ($0.wallTime, $0.campaign) < ($1.wallTime, $1.campaign) }
        let counts = Dictionary(grouping: sorted, by: \.campaign).mapValues(\.count)
        var seen: [String: Int] = [:]
        for entry in sorted {
            seen[entry.campaign, default: 0] += 1
            if seen[entry.campaign, default: 0] <= shown {
                entries.append(.init(entry, past[entry.start], now: now, zone: zone))
            }
        }
        for (campaign, count) in counts where count > shown { leaveOut(count - shown, of: campaign) }
    }

    /// Counts entries that are not shown.
    fileprivate mutating func leaveOut(_ count: Int, of campaign: String) {
        leftOut[campaign, default: 0] += count
        more = leftOut.sorted { $0.key < $1.key }.map { "and \($0.value.grouped) more of \($0.key)" }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}

extension CalendarPage.Entry {
    /// - Parameter zone: the operator's time zone.
    fileprivate init(_ entry: ScheduleResult.Entry, _ run: Run?, now: String, zone: TimeZone) {
        let last = zone.wall(at: WrittenMoment.parse(entry.lastStartsAt) ?? Timestamp(milliseconds: 0))
        campaign = entry.campaign
        address = run.map { "/runs/\($0.id)" } ?? CampaignPage.address(entry.campaign)
        state = run?.state.rawValue
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
        let isChangeable = run == nil && entry.startsAt > now && (entry.failure ?? entry.values?.first?.key) != nil
        valuesAddress = isChangeable ? NextStartPage.address(entry.campaign, entry.occurrence) : nil
        values = entry.values.map { given in
            let text = given.sorted { $0.key < $1.key }.map(\.value.onOneLine).joined(separator: " · ")
            return text.count > Self.valuesShown ? text.prefix(Self.valuesShown) + "…" : text
        }
    }

    /// An entry for a run that no schedule started.
    fileprivate init(_ run: Run, at time: String) {
        campaign = run.campaign
        address = "/runs/\(run.id)"
        self.time = time
        detail = run.occurrence
        isPast = true
        state = run.state.rawValue
    }

    /// The maximum number of characters of a start's values in the calendar.
    private static let valuesShown = 60

    /// Returns `03-28 09:00` for `2027-03-28T09:00`.
    private static func short(_ wall: String) -> String { String(wall.dropFirst(5)).replacing("T", with: " ") }
}

extension Run {
    fileprivate var start: CalendarPage.Start { .init(campaign: campaign, occurrence: occurrence) }

    /// Whether people see the run's notifications, and it is no test.
    fileprivate var isBroadcast: Bool { !isTest && definition.campaign.pushType == .alert }
}

extension ScheduleResult.Entry {
    fileprivate var start: CalendarPage.Start { .init(campaign: campaign, occurrence: occurrence) }

    /// The time that determines the entry's day: on each device's clock, or on the operator's clock.
    fileprivate var wallTime: String { byEachClock ? occurrence : startsAtLocal }
}
