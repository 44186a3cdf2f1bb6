import Logging
import Model
import Store
import Synchronization
import Sending
import Campaigns

/// What the parts of the daemon know together.
final class DaemonStatusTracker: Sendable {
    private struct State {
        var agenda = Agenda()
        var feeds: [ReadyCampaign] = []
        var status = DaemonStatus()
        var inHand: Set<Int64> = []
        /// Runs that this process leaves alone for a while, until when by ``WallClock/uptime``.
        var rests: [Int64: (pause: GrowingPause, until: Duration)] = [:]
        var loopedAt: Duration?
        var snapshot: Scheduler.CampaignSnapshot?
        /// All that this process has ever read.
        var names: Set<String> = []
        var isCoordinator = false
        /// A sign of life that is being written, since when; by ``WallClock/uptime``.
        var writingSince: Duration?
        /// Why the last one was not written.
        var writeFault: String?
    }

    /// A store that takes longer to take one row is held by somebody.
    private static let writeMax: Duration = .seconds(2)

    let changed = Signal()
    private let state = Mutex(State())

    /// What the files said last.
    var snapshot: Scheduler.CampaignSnapshot? { state.withLock { $0.snapshot } }

    /// Of all daemons of the store this one starts what is due.
    var isCoordinator: Bool { state.withLock { $0.isCoordinator } }

    func becameCoordinator() {
        state.withLock { state in
            state.isCoordinator = true
            // From where the one before has come, not from when this one began to look.
            state.agenda = Agenda()
        }
        changed.raise()
    }

    func take(_ snapshot: Scheduler.CampaignSnapshot, marks: [String: ScheduleMark], now: Timestamp) -> [ScheduleMark] {
        state.withLock { state in
            state.snapshot = snapshot
            state.names.formUnion(snapshot.names)
            state.feeds = snapshot.campaigns.filter { $0.campaign.feed != nil }
            state.status.campaigns = snapshot.campaigns.count
            state.status.scheduled = snapshot.campaigns.count { $0.timetable != nil }
            state.status.problems = snapshot.problems
            state.status.readAt = now
            if snapshot.problems.isEmpty { state.status.readWellAt = now }
            return state.agenda.update(snapshot.campaigns, marks: marks, now: now)
        }
    }

    /// Whether a campaign is none any more. On a store that machines share another daemon may have a file that this one has
    /// never had, and its schedule goes on with that one.
    func isGone(_ campaign: String, onShared isShared: Bool) -> Bool {
        state.withLock { state in
            !(state.snapshot?.names.contains(campaign) ?? true) && (!isShared || state.names.contains(campaign))
        }
    }

    func due(at now: Timestamp) -> [Agenda.Due] { state.withLock { $0.agenda.due(at: now) } }
    var nextStart: Timestamp? { state.withLock { $0.agenda.nextStart } }
    /// Campaigns that new items of a feed start.
    var feeds: [ReadyCampaign] { state.withLock { $0.feeds } }
    var names: [String] { state.withLock { $0.agenda.names } }

    var status: DaemonStatus {
        state.withLock { state in
            var status = state.status
            let next = state.agenda.next
            status.nextCampaign = next?.campaign.campaign.name
            status.nextStart = next?.occurrence.startsAt
            status.running = state.inHand.sorted()
            return status
        }
    }

    /// When the daemon last gave a sign of life, or tried to; by ``WallClock/uptime``.
    var loopedAt: Duration? { state.withLock { $0.loopedAt } }
    func looped(at uptime: Duration) { state.withLock { $0.loopedAt = uptime } }

    /// The daemon begins to write its sign of life.
    func writes(at uptime: Duration) { state.withLock { $0.writingSince = uptime } }

    /// It is written, or cannot be.
    func wrote(fault: String?) {
        state.withLock { state in
            state.writingSince = nil
            state.writeFault = fault
        }
    }

    /// Why nothing that is sent could be put on record; nil when it could.
    func unwritable(at uptime: Duration) -> String? {
        state.withLock { state in
            if let fault = state.writeFault { return fault }
            guard let since = state.writingSince, uptime - since > Self.writeMax else { return nil }
            return
                "the store has taken no write for \(WrittenDuration.text(.seconds((uptime - since).components.seconds)))"
        }
    }

    /// False: it is in hand already, or was not to be tried again yet.
    ///
    /// - Parameter now: ``WallClock/uptime``.
    func take(_ run: Int64, now: Duration) -> Bool {
        state.withLock { state in
            if let rest = state.rests[run], now < rest.until { return false }
            return state.inHand.insert(run).inserted
        }
    }

    func endRest(of run: Int64) { state.withLock { _ = $0.rests.removeValue(forKey: run) } }

    /// - Parameters:
    ///   - moment: when this process begins to leave the run alone, for longer each time in a row. `nil`: not at all.
    ///   - first: the length of the first rest.
    func release(_ run: Int64, restingFrom moment: Duration?, first: Duration) {
        state.withLock { state in
            state.inHand.remove(run)
            guard let moment else { return _ = state.rests.removeValue(forKey: run) }
            var pause = state.rests[run]?.pause ?? GrowingPause(first: first, max: max(first, HaltRetry.pauseMax))
            let until = moment + pause.next()
            state.rests[run] = (pause, until)
        }
    }
}

/// Tells, for the coordinator, that other daemons obey other files: each change of that once.
struct FilesComparison {
    private static let every: Duration = .seconds(15)

    private var lookedAt: Duration?
    private var told: Set<String> = []

    /// - Parameter uptime: by ``WallClock/uptime``.
    mutating func look(_ store: any SenderLog, at uptime: Duration, _ logger: Logger) async throws {
        guard store.isShared, lookedAt.map({ uptime - $0 >= Self.every }) ?? true else { return }
        lookedAt = uptime
        let others = Set(try await store.senders().withOtherFiles.map { ProcessName.shown($0.name) })
        if !others.isEmpty, others != told {
            logger.warning(
                "other campaign files there; put the same on all machines",
                metadata: .facts([.reason: "\(others.sorted().joined(separator: ", "))"]))
        }
        told = others
    }
}

/// How many answers came a second since it was last asked.
struct AnswerRate {
    private var count = ServiceMetrics.answered.load(ordering: .relaxed)
    private var at: Duration

    init(at uptime: Duration) { at = uptime }

    mutating func next(at uptime: Duration) -> Double {
        let now = ServiceMetrics.answered.load(ordering: .relaxed)
        defer { (count, at) = (now, uptime) }
        return uptime > at ? Double(now - count) / ((uptime - at) / .seconds(1)) : 0
    }
}

extension Scheduler.CampaignSnapshot {
    /// For the audit.
    var summary: String {
        var words = "\(hashes.count) changed, \(campaigns.count.counted("campaign"))"
        if !problems.isEmpty { words += "; not taken over: " + problems.map(\.path).joined(separator: ", ") }
        return words
    }
}
