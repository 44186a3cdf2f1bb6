package import Model
package import Sending
package import Store

/// The account of a run; audience is the sum of the others.
package struct CountsResult: Codable, Hashable, Sendable {
    package var audience, pending, leased, accepted, rejected, unknown, suppressed: Int

    package init(_ counts: DeliveryCounts) {
        audience = counts.audience
        pending = counts.pending
        leased = counts.leased
        accepted = counts.accepted
        rejected = counts.rejected
        unknown = counts.unknown
        suppressed = counts.suppressed
    }
}

/// The stable shape of `status RUN --json`, and of each run of `status --json`; keys are written in snake_case.
package struct RunResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    package var state: String
    package var stateReason: String?
    /// The person it waits for; absent where it paused itself.
    package var pausedBy: String?
    /// Of a run that paused itself: `unreachable` or `credential`, which the same command takes up again; `breaker`, `late`,
    /// `stage` or `volume`, which wait for `resume`; `approval`, which waits for `approve`. Of a finished run that is no
    /// success: `unsuccessful`.
    package var halt: String?
    /// Host and process id; absent when no process sends it.
    package var process: String?
    /// `running`, `stopped`, `unseen` (alive, and not to be seen from here) or `ended`.
    package var processState: String?
    /// Since when that process sends; absent where it is not known.
    package var processSince: String?
    /// When a process that sends it was last heard of, or gave it up. ISO 8601, UTC.
    package var heartbeatAt: String?
    package var createdAt: String
    package var startedAt: String?
    package var finishedAt: String?
    /// False while the audience is still being written down.
    package var frozen: Bool
    package var test: Bool
    package var counts: CountsResult
    /// What those not sent yet wait for, the nearest first; absent where nothing waits, and in lists.
    package var waiting: [WaitResult]?
    /// Others wait for something later than all of `waiting`; absent: none do.
    package var hasLater: Bool?
    /// Endpoints that are left alone for now.
    package var holdingBack: [HoldResult]?
    /// Since when its process waits for the store, which does not take what it has to record; absent where it does not.
    package var storeWaitSince: String?
    /// `locked`, `disk_full` or `failing`.
    package var storeWait: String?
    /// What was put in order after the last sender that ended in the middle; absent where none did, and in lists.
    package var recovery: RecoveryResult?
    /// Absent in a run without stages, and in lists.
    package var stages: [StageResult]?
    /// The run that this one puts right; absent where it puts none right.
    package var corrects: CorrectionResult?
    /// Absent where it had the signatures that it needed, or needed none, and in lists.
    package var brokenGlass: BrokenGlassResult?

    /// - Parameter holder: the process that has it.
    package init(
        _ run: Run, heldBy holder: RunHolder? = nil, _ waits: RunWaits = RunWaits(), _ recovery: StoreEvent? = nil,
        stages: [StageRecord] = [], brokenGlass: BrokenGlass? = nil
    ) {
        self.brokenGlass = brokenGlass.map(BrokenGlassResult.init)
        self.stages = StageResult.all(run, stages)
        corrects = CorrectionResult(run)
        self.run = run.id
        campaign = run.campaign
        occurrence = run.occurrence
        state = run.state.rawValue
        stateReason = run.stateReason
        pausedBy = run.pausedBy
        halt = run.halt?.rawValue
        process = run.owner.map(ProcessName.shown)
        processState = holder?.state.rawValue
        processSince = holder?.since?.iso8601
        heartbeatAt = run.heartbeatAt?.iso8601
        createdAt = run.createdAt.iso8601
        startedAt = run.startedAt?.iso8601
        finishedAt = run.finishedAt?.iso8601
        frozen = run.isFrozen
        test = run.isTest
        counts = CountsResult(run.counts)
        waiting = waits.groups.isEmpty ? nil : waits.groups.map(WaitResult.init)
        hasLater = waits.hasLater ? true : nil
        holdingBack = waits.holds.isEmpty ? nil : waits.holds.map(HoldResult.init)
        storeWaitSince = holder?.storeWait?.since.iso8601
        storeWait = holder?.storeWait?.reason.rawValue
        self.recovery = recovery.map { RecoveryResult(at: $0.at.iso8601, detail: $0.detail) }
    }
}

/// Who started a run without the signatures that it needed, and why; keys are written in snake_case.
package struct BrokenGlassResult: Codable, Hashable, Sendable {
    package var at, by, reason: String

    init(_ broken: BrokenGlass) { (at, by, reason) = (broken.at.iso8601, broken.by, broken.reason) }
}

extension BrokenGlass {
    /// Nil: the run had its signatures, or needed none.
    static func of(_ run: Run, in store: any RunLog) async throws -> BrokenGlass? {
        let filter = EventFilter(run: run.id, kind: EventKind.glassBroken.rawValue)
        guard let event = try await store.events(filter, before: nil, limit: 1).events.first,
            let reason = reason(in: event.detail)
        else { return nil }
        return BrokenGlass(at: event.at, by: event.actor.name, reason: reason)
    }
}

/// What became of deliveries that a sender had left in flight, in words, and why its journal was not believed.
package struct RecoveryResult: Codable, Hashable, Sendable {
    package var at, detail: String
}

/// Deliveries that wait; times in ISO 8601, UTC.
package struct WaitResult: Codable, Hashable, Sendable {
    /// `retry`, `quiet_hours`, `silent_budget`, `frequency_cap` or `wave`.
    package var reason: String
    /// Counted up to 10,000 for one moment.
    package var deliveries: Int
    /// More than `deliveries` wait; absent: exactly so many.
    package var isMore: Bool?
    package var firstAt: String
    package var lastAt: String
    /// Of a wave: some of the devices' time zones.
    package var zones: [String]?

    package init(_ group: RunWaits.Group) {
        reason = group.cause.rawValue
        deliveries = group.deliveries
        isMore = group.isMore ? true : nil
        firstAt = group.first.iso8601
        lastAt = group.last.iso8601
        zones = group.zones.isEmpty ? nil : group.zones
    }
}

/// An endpoint in trouble that a run's sender leaves alone.
package struct HoldResult: Codable, Hashable, Sendable {
    package var environment: String
    package var endpoint: String
    /// The status of its last answer; absent: there was none.
    package var status: Int?
    package var since: String
    package var nextTryAt: String

    package init(_ hold: EndpointHold) {
        environment = hold.environment.rawValue
        endpoint = hold.endpoint
        status = hold.status
        since = hold.since.iso8601
        nextTryAt = hold.nextTryAt.iso8601
    }
}

/// Somebody set the wall clock.
package struct ClockStepResult: Codable, Hashable, Sendable {
    /// What it showed then, ISO 8601 and UTC.
    package var at: String
    /// Forward; negative: back.
    package var milliseconds: Int64

    package init(_ step: ClockStep) {
        at = step.at.iso8601
        milliseconds = step.by.wholeMilliseconds
    }
}

/// The stable shape of `daemon` in `status --json`; keys are written in snake_case, times in ISO 8601 and UTC.
package struct DaemonResult: Codable, Hashable, Sendable {
    package var process: String
    /// As of a run.
    package var processState: String?
    package var startedAt: String
    package var heartbeatAt: String
    package var campaigns: Int
    package var scheduled: Int
    package var problems: [DaemonStatus.Problem]
    package var readAt: String?
    /// The last time that nothing was wrong.
    package var readWellAt: String?
    package var nextCampaign: String?
    package var nextStart: String?
    package var running: [Int64]

    package init(_ daemon: DaemonHeartbeat, heldBy holder: RunHolder? = nil) {
        process = ProcessName.shown(daemon.owner)
        processState = holder?.state.rawValue
        startedAt = daemon.startedAt.iso8601
        heartbeatAt = daemon.heartbeatAt.iso8601
        campaigns = daemon.status.campaigns
        scheduled = daemon.status.scheduled
        problems = daemon.status.problems
        readAt = daemon.status.readAt?.iso8601
        readWellAt = daemon.status.readWellAt?.iso8601
        nextCampaign = daemon.status.nextCampaign
        nextStart = daemon.status.nextStart?.iso8601
        running = daemon.status.running
    }
}

/// The latest runs: the stable shape of `status --json`.
package struct RunListResult: Codable, Hashable, Sendable {
    /// Absent: there is none.
    package var daemon: DaemonResult?
    /// Newest first.
    package var runs: [RunResult]
    /// Absent: nobody set the wall clock within a day.
    package var clockStep: ClockStepResult?
    /// Absent: the store is one machine's. The living first.
    package var senders: [SenderResult]?
    /// Absent: all runs can be read.
    package var unreadable: [UnreadableRunResult]?
    /// Texts of files that wait for release; absent: none, or not asked for.
    package var pendingChanges: [ChangeResult]?
}

/// A run that this version cannot read, and leaves alone.
package struct UnreadableRunResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    /// The stored word.
    package var state: String
    package var message: String

    package init(_ run: UnreadableRun) {
        self.run = run.run
        campaign = run.campaign
        occurrence = run.occurrence
        state = run.state
        message = run.error.description
    }
}

/// One of the senders of a store that machines share; times are the store's, in ISO 8601 and UTC.
package struct SenderResult: Codable, Hashable, Sendable {
    /// Host and process id.
    package var process: String
    /// `alive`, `silent` (for some seconds) or `gone`: others took its work over, or will.
    package var state: String
    /// It starts what is due for all of them.
    package var coordinator: Bool
    /// Whoever came later has a higher one.
    package var term: Int64
    package var command: String?
    package var since: String
    package var heardAt: String
    package var lanes: Int
    /// Answers of APNs a second, of late.
    package var perSecond: Int
    package var runs: [Int64]
    /// It obeys other campaigns or templates than the coordinator; absent where it does not.
    package var otherFiles: Bool?
    /// Its heartbeats take so long that it sends nothing while others do; absent where they do not.
    package var tooSlow: Bool?

    package init(_ sender: SenderOnRecord, otherFiles: Bool = false) {
        self.otherFiles = otherFiles ? true : nil
        tooSlow = sender.state != .gone && sender.facts.isTooSlow == true ? true : nil
        process = ProcessName.shown(sender.name)
        state = sender.state.rawValue
        coordinator = sender.isCoordinator
        term = sender.term
        command = sender.facts.command
        since = sender.since.iso8601
        heardAt = sender.heardAt.iso8601
        lanes = sender.state == .gone ? 0 : sender.facts.lanes
        perSecond = sender.state == .gone ? 0 : Int(sender.facts.rate.rounded())
        runs = sender.state == .gone ? [] : sender.facts.runs
    }

    /// In order, with whether their files are others than the coordinator's.
    package static func all(_ senders: [SenderOnRecord]) -> [SenderResult] {
        let others = Set(senders.withOtherFiles.map(\.name))
        return senders.map { SenderResult($0, otherFiles: others.contains($0.name)) }
    }

    /// For those that are to be warned of.
    package var filesWarning: String {
        "\(process) obeys other campaigns or templates than the coordinator: what is started depends on which of them "
            + "coordinates; put the same files on all machines"
    }

    /// What an operator has to look at.
    package var warnings: [String] {
        var warnings = otherFiles == true ? [filesWarning] : []
        if tooSlow == true {
            warnings.append(
                "\(process) sends nothing while other senders do: the database server answers its heartbeats too slowly; check "
                    + "the network between that machine and the server")
        }
        return warnings
    }

    /// `coordinator`, `alive`, `too slow`, `silent` or `gone`.
    package var shownState: String {
        if coordinator { return "coordinator" }
        return tooSlow == true && state == "alive" ? "too slow" : state
    }
}
