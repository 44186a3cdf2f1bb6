import Campaigns
import Logging
import Model
import Platform
import Senders
import Sending
import Store
import Synchronization

/// The state that the parts of the daemon share.
final class DaemonStatusTracker: Sendable {
    private struct State {
        var agenda = Agenda()
        var feeds: [ReadyCampaign] = []
        var status = DaemonStatus()
        var inHand: Set<Int64> = []
        /// The runs that this process backs off from, each with the end of its pause by ``WallClock/uptime``.
        var rests: [Int64: (pause: GrowingPause, until: Duration)] = [:]
        var loopedAt: Duration?
        var snapshot: Scheduler.CampaignSnapshot?
        /// The names of all campaigns that this process has ever read.
        var names: Set<String> = []
        var isCoordinator = false
        /// When the write of the current heartbeat began, by ``WallClock/uptime``; `nil` if none is being written.
        var writingSince: Duration?
        /// The reason why the last heartbeat was not written.
        var writeFault: String?
    }

    /// The longest time that a normal write of one row takes. If a write takes longer, another process is blocking
    /// the store.
    private static let writeMax: Duration = .seconds(2)

    let changed = Signal()
    private let state = Mutex(State())

    /// The content of the files when they were last read.
    var snapshot: Scheduler.CampaignSnapshot? { state.withLock { $0.snapshot } }

    /// Whether this daemon starts what is due. Only one daemon of a store does so.
    var isCoordinator: Bool { state.withLock { $0.isCoordinator } }

    func becameCoordinator() {
        state.withLock { state in
            state.isCoordinator = true
            // The agenda continues from where the previous coordinator stopped, not from where this one began to look.
            state.agenda = Agenda()
        }
        changed.raise()
    }

    func adopt(_ snapshot: Scheduler.CampaignSnapshot, marks: [String: ScheduleMark], now: Timestamp) -> [ScheduleMark]
    {
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

    /// Returns whether a campaign no longer exists. On a store that machines share, another daemon may have a file that
    /// this one has never had, and the schedule continues with that daemon.
    func isGone(_ campaign: String, onShared isShared: Bool) -> Bool {
        state.withLock { state in
            !(state.snapshot?.names.contains(campaign) ?? true) && (!isShared || state.names.contains(campaign))
        }
    }

    func due(at now: Timestamp) -> [Agenda.Due] { state.withLock { $0.agenda.due(at: now) } }
    var nextStart: Timestamp? { state.withLock { $0.agenda.nextStart } }
    /// The campaigns that start when their feed has new items.
    var feeds: [ReadyCampaign] { state.withLock { $0.feeds } }
    var names: [String] { state.withLock { $0.agenda.names } }

    /// Whether this process has a run to send.
    var isSending: Bool { state.withLock { !$0.inHand.isEmpty } }

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

    /// When the daemon last wrote a heartbeat, or tried to; by ``WallClock/uptime``.
    var loopedAt: Duration? { state.withLock { $0.loopedAt } }
    func looped(at uptime: Duration) { state.withLock { $0.loopedAt = uptime } }

    /// Notes that the daemon begins to write a heartbeat.
    func writes(at uptime: Duration) { state.withLock { $0.writingSince = uptime } }

    /// Notes that the heartbeat was written, or why it was not.
    func wrote(fault: String?) {
        state.withLock { state in
            state.writingSince = nil
            state.writeFault = fault
        }
    }

    /// Returns the reason why results cannot be recorded, or `nil` if they can.
    func unwritable(at uptime: Duration) -> String? {
        state.withLock { state in
            if let fault = state.writeFault { return fault }
            guard let since = state.writingSince, uptime - since > Self.writeMax else { return nil }
            return
                "the store has accepted no write for "
                + "\(WrittenDuration.text(.seconds((uptime - since).components.seconds)))"
        }
    }

    /// Claims a run. Returns `false` if it is claimed already, or if its pause is not over.
    ///
    /// - Parameter now: the time by ``WallClock/uptime``.
    func claim(_ run: Int64, now: Duration) -> Bool {
        state.withLock { state in
            if let rest = state.rests[run], now < rest.until { return false }
            return state.inHand.insert(run).inserted
        }
    }

    /// Claims a run to leave it, even during its pause. Returns `false` if it is claimed already. A later start waits
    /// for ``letGo(_:)``.
    func hold(_ run: Int64) -> Bool { state.withLock { $0.inHand.insert(run).inserted } }
    func letGo(_ run: Int64) { state.withLock { _ = $0.inHand.remove(run) } }

    func endRest(of run: Int64) { state.withLock { _ = $0.rests.removeValue(forKey: run) } }

    /// - Parameters:
    ///   - moment: the time from which this process backs off from the run, or `nil` for no pause. Each successive
    ///     pause is longer than the previous one.
    ///   - first: the length of the first pause.
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

/// Logs, on the coordinator, that other daemons use different files. Each change is logged once.
struct FilesComparison {
    private static let every: Duration = .seconds(15)

    private var lookedAt: Duration?
    private var told: Set<String> = []

    /// - Parameter uptime: the time by ``WallClock/uptime``.
    mutating func look(_ store: any SenderLog, at uptime: Duration, _ logger: Logger) async throws {
        guard store.isShared, lookedAt.map({ uptime - $0 >= Self.every }) ?? true else { return }
        lookedAt = uptime
        let others = Set(try await store.senders().withOtherFiles.map { ProcessName.shown($0.name) })
        if !others.isEmpty, others != told {
            logger.warning(
                "senders have different campaign files; put the same files on all machines",
                metadata: .facts([.reason: "\(others.sorted().joined(separator: ", "))"]))
        }
        told = others
    }
}

/// The number of responses per second since the previous call.
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
    /// The summary for the audit.
    var summary: String {
        var text = "\(hashes.count) changed, \(campaigns.count.counted("campaign"))"
        if !problems.isEmpty { text += "; not reloaded: " + problems.map(\.path).joined(separator: ", ") }
        return text
    }
}
