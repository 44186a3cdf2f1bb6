import Campaigns
import Model

/// Occurrences that are due and not started yet, each with a pause of its own: an occurrence that cannot be started
/// delays no other. Times are ``WallClock/uptime``.
///
/// The occurrences of a campaign are started one after another, and different campaigns are started concurrently.
struct DueBacklog {
    /// The number of campaigns whose occurrences are started at the same time.
    static let campaignsAtOnce = 8
    /// The maximum number of campaigns among them whose last count was too slow.
    static let slowAtOnce = 1

    private static let firstPause: Duration = .seconds(1)
    /// The longest pause after an error of the store, which concerns all occurrences and may end at any moment.
    private static let passingPauseMax: Duration = .seconds(10)
    /// The longest pause after any other error, such as an audience that takes too long to count.
    private static let pauseMax: Duration = .seconds(300)

    private struct Entry {
        var due: Agenda.Due
        var pause = GrowingPause(first: firstPause, max: pauseMax)
        var notBefore: Duration?

        func isReady(at uptime: Duration) -> Bool { notBefore.map { $0 <= uptime } ?? true }
    }

    private struct Key: Hashable {
        var campaign: String
        var occurrence: String

        init(_ due: Agenda.Due) { (campaign, occurrence) = (due.campaign.campaign.name, due.occurrence.key) }
    }

    private var entries: [Key: Entry] = [:]
    /// The keys in the order in which they became due.
    private var order: [Key] = []
    /// Campaigns whose occurrences are being started.
    private var starting: Set<String> = []
    private var slow: Set<String> = []

    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ due: [Agenda.Due]) {
        for due in due where entries[Key(due)] == nil {
            entries[Key(due)] = Entry(due: due)
            order.append(Key(due))
        }
    }

    /// Returns the occurrences to start now, in one list for each campaign. They come from the entries, and from
    /// `others` if they have no entry. Their campaigns count as being started until ``settle(_:_:at:)``.
    mutating func begin(at uptime: Duration, with others: [Agenda.Due] = []) -> [[Agenda.Due]] {
        let own = order.compactMap { entries[$0] }.filter { $0.isReady(at: uptime) }.map(\.due)
        let ready = own + others.filter { entries[Key($0)] == nil }
        let campaigns = Dictionary(grouping: ready.indices) { ready[$0].campaign.campaign.name }
        var begun: [[Agenda.Due]] = []
        for (name, indices) in campaigns.sorted(by: { $0.value[0] < $1.value[0] }) where mayBegin(name) {
            starting.insert(name)
            begun.append(indices.map { ready[$0] })
        }
        return begun
    }

    private func mayBegin(_ campaign: String) -> Bool {
        guard !starting.contains(campaign), starting.count < Self.campaignsAtOnce else { return false }
        return !slow.contains(campaign) || starting.intersection(slow).count < Self.slowAtOnce
    }

    /// Returns whether it is decided without another look when the occurrence starts: it has an entry, or its campaign
    /// waits for other starts to end.
    func isDecided(_ due: Agenda.Due) -> Bool {
        entries[Key(due)] != nil || !mayBegin(due.campaign.campaign.name)
    }

    /// Removes the occurrences of a campaign that were started or ended, and keeps the delayed ones for their next
    /// attempt.
    mutating func settle(
        _ tried: [Agenda.Due], _ made: [(due: Agenda.Due, made: DueRuns.Made)], at uptime: Duration
    ) {
        var delays: [Key: DueRuns.Delay] = [:]
        for entry in made { if case .delayed(let delay) = entry.made { delays[Key(entry.due)] = delay } }
        for name in Set(tried.map(\.campaign.campaign.name)) {
            starting.remove(name)
            if delays.contains(where: { $0.key.campaign == name && $0.value.isSlow }) {
                slow.insert(name)
            } else {
                slow.remove(name)
            }
        }
        for due in tried {
            let key = Key(due)
            guard let delay = delays[key] else {
                entries.removeValue(forKey: key)
                continue
            }
            if entries[key] == nil { order.append(key) }
            var entry = entries[key] ?? Entry(due: due)
            let pause = entry.pause.next()
            entry.notBefore = uptime + (delay.isPassing ? min(pause, Self.passingPauseMax) : pause)
            entry.due.fault = delay.reason
            entries[key] = entry
        }
        order.removeAll { entries[$0] == nil }
    }

    /// Returns when the next pause of an entry ends, or `nil` if no entry pauses. An entry without a pause waits for
    /// another start to end, so it is not considered.
    func nextTry(after uptime: Duration) -> Duration? {
        entries.filter { !starting.contains($0.key.campaign) && !$0.value.isReady(at: uptime) }
            .compactMap(\.value.notBefore).min()
    }
}
