import Campaigns
import Foundation
import Model
import Sending
import Store

/// Shows a run going on: one line that renews itself on a terminal, a plain line every ten seconds elsewhere. While little
/// moves it says what the rest waits for.
struct ProgressPrinter: Sendable {
    private static let terminalInterval: Duration = .milliseconds(200)
    private static let plainInterval: Duration = .seconds(10)

    let control: RunControl
    /// Asks the store what the deliveries wait for; about once a second at most.
    let waits: @Sendable () async throws -> RunWaits

    /// Prints until cancelled.
    func print() async {
        let clock = ContinuousClock()
        let start = clock.now
        let settledBefore = control.counts.settled
        let interval = Console.isTerminal ? Self.terminalInterval : Self.plainInterval
        var tail = ProgressTail()
        while true {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            let counts = control.counts
            if tail.wants(counts, after: clock.now - start) {
                // A store that is busy is asked again; the line does without.
                tail.took((try? await waits()) ?? RunWaits(), now: Timestamp(Date()))
            }
            let line = Self.line(
                counts, settledBefore: settledBefore, elapsed: clock.now - start,
                waits: WaitsText(tail.waits, control.storeWait, now: Timestamp(Date())).sentences)
            Console.isTerminal ? Console.progress(line) : Console.note(line)
        }
    }

    /// `12,400 of 20,000 settled (62.0 %), 9,800/s, 12,369 accepted, 31 rejected, 0 unknown, 1s left`, or in place of the
    /// time left what the rest waits for.
    static func line(
        _ counts: DeliveryCounts, settledBefore: Int, elapsed: Duration, waits: [String] = []
    ) -> String {
        let settled =
            "\(counts.settled.grouped) of \(counts.audience.grouped) settled "
            + "(\(counts.settled.share(of: counts.audience)))"
        let outcomes =
            "\(counts.accepted.grouped) accepted, \(counts.rejected.grouped) rejected, "
            + "\(counts.unknown.grouped) unknown"
        guard waits.isEmpty else { return (["\(settled), \(outcomes)"] + waits).joined(separator: "; ") }
        let rate = Double(counts.settled - settledBefore) / max(elapsed.inSeconds, 0.001)
        let left = counts.audience - counts.settled
        let timeLeft = rate > 0 ? WrittenDuration.text(.seconds(Int64((Double(left) / rate).rounded(.up)))) : "-"
        return "\(settled), \(Int(rate).grouped)/s, \(outcomes), \(timeLeft) left"
    }
}

/// When to ask what the rest of a run waits for: once little moves, then every second, and less often for what is far
/// away.
struct ProgressTail {
    /// Deliveries settled in a second.
    static let littleMax = 1000
    private static let askEvery: Duration = .seconds(1)
    private static let askSeldom: Duration = .seconds(10)
    private static let farAway: Duration = .seconds(60)

    private(set) var waits = RunWaits()
    private var looked: (settled: Int, at: Duration)?
    private var askedAt: Duration?
    private var pause = askEvery

    /// - Parameter time: since any one moment.
    mutating func wants(_ counts: DeliveryCounts, after time: Duration) -> Bool {
        let last = looked ?? (counts.settled, time)
        if looked == nil { looked = last }
        let elapsed = time - last.at
        guard elapsed >= .seconds(1) else { return false }
        looked = (counts.settled, time)
        let isLittle = Double(counts.settled - last.settled) < elapsed.inSeconds * Double(Self.littleMax)
        guard isLittle, counts.settled < counts.audience else {
            waits = RunWaits()
            askedAt = nil
            return false
        }
        if let askedAt, time - askedAt < pause { return false }
        askedAt = time
        return true
    }

    mutating func took(_ waits: RunWaits, now: Timestamp) {
        self.waits = waits
        let isFar = waits.holds.isEmpty && waits.groups.first.map { $0.first - now > Self.farAway } ?? false
        pause = isFar ? Self.askSeldom : Self.askEvery
    }
}

/// What a run waits for, in words, its times by the reader's own clock.
struct WaitsText {
    private static let zonesShown = 2

    private let waits: RunWaits
    private let storeWait: StoreWait?
    private let now: Timestamp
    private let calendar: Calendar

    init(_ waits: RunWaits, _ storeWait: StoreWait? = nil, now: Timestamp, zone: TimeZone = .current) {
        self.waits = waits
        self.storeWait = storeWait
        self.now = now
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        self.calendar = calendar
    }

    /// What keeps everybody waiting comes first.
    var sentences: [String] {
        [storeWait.map(text)].compactMap(\.self) + waits.holds.map(text) + waits.groups.map(text)
            + (waits.hasLater ? ["more wait for later"] : [])
    }

    /// `the store is locked by another program since 14:02:10: answers are kept, nothing new is sent`
    private func text(_ wait: StoreWait) -> String {
        let trouble =
            switch wait.reason {
            case .locked: "the store is locked by another program"
            case .diskFull: "no space is left for the store"
            case .failing: "the store's disk fails, or its quota is used up"
            }
        return "\(trouble) since \(text(wait.since)): answers are kept, nothing new is sent"
    }

    /// `holding back: api.push.apple.com answered 503 since 14:00:02, next try at 14:02:10`
    private func text(_ hold: EndpointHold) -> String {
        let host = hold.endpoint.hasSuffix(":443") ? String(hold.endpoint.dropLast(4)) : hold.endpoint
        let answer = hold.status.map { "answered \($0)" } ?? "has not answered"
        return "holding back: \(host) \(answer) since \(text(hold.since)), next try at \(text(hold.nextTryAt))"
    }

    /// `12 wait for their retry at 14:02:10`
    private func text(_ group: RunWaits.Group) -> String {
        let subject = "\(group.deliveries.grouped) \(group.deliveries == 1 ? "waits" : "wait")"
        let (first, last) = (text(group.first), text(group.last))
        let time = first == last ? "at \(first)" : "from \(first) to \(last)"
        switch group.cause {
        case .retry: return "\(subject) for their retry \(time)"
        case .quietHours: return "\(subject) for their quiet hours to end \(time)"
        case .silentBudget: return "\(subject) for their silent budget \(time)"
        case .wave:
            let zones = group.zones.isEmpty ? "" : " (\(Page.list(group.zones, atMost: Self.zonesShown)))"
            return "\(subject) for the wave \(time)\(zones)"
        }
    }

    /// `14:02:10`, without seconds where there are none, with the day where it is another one.
    private func text(_ moment: Timestamp) -> String {
        let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: moment.date)
        func digits(_ number: Int?) -> String { (number ?? 0) < 10 ? "0\(number ?? 0)" : "\(number ?? 0)" }
        var text = "\(digits(parts.hour)):\(digits(parts.minute))"
        if let second = parts.second, second > 0 { text += ":\(digits(second))" }
        if calendar.isDate(moment.date, inSameDayAs: now.date) { return text }
        return "\(parts.year ?? 0)-\(digits(parts.month))-\(digits(parts.day)) \(text)"
    }
}
