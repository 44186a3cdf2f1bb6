package import Model
package import Senders
package import Store

/// The counts of a run. `audience` is the sum of the others.
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
    /// The person who paused the run; absent if the run paused itself.
    package var pausedBy: String?
    /// The reason why the run paused itself, or why a finished run is no success:
    ///
    /// - `unreachable` or `credential`: the same command continues the run.
    /// - `breaker`, `late`, `stage`, `volume` or `restored`: the run waits for `resume`.
    /// - `approval`: the run waits for `approve`.
    /// - `grown`: nothing resumes the run, and `cancel` ends it.
    /// - `unsuccessful`: the run finished without success.
    package var halt: String?
    /// Host and process id; absent if no process sends the run.
    package var process: String?
    /// `running`, `stopped`, `unseen` (alive, but not visible from here) or `ended`.
    package var processState: String?
    /// When that process started to send; absent if unknown.
    package var processSince: String?
    /// The last heartbeat of a process that sends the run, or the time when it released the run. ISO 8601, UTC.
    package var heartbeatAt: String?
    package var createdAt: String
    package var startedAt: String?
    package var finishedAt: String?
    /// `false` while the audience is still being frozen.
    package var frozen: Bool
    package var test: Bool
    package var counts: CountsResult
    /// The waits of the deliveries not sent yet, the nearest first; absent if nothing waits, and in lists.
    package var waiting: [WaitResult]?
    /// `true` if other deliveries wait for something later than all of `waiting`; absent otherwise.
    package var hasLater: Bool?
    /// The endpoints that the sender backs off from.
    package var holdingBack: [HoldResult]?
    /// When the run's process began to wait for a store that accepts no writes; absent if the process does not wait.
    package var storeWaitSince: String?
    /// `locked`, `disk_full`, `failing`, `away` or `refused`.
    package var storeWait: String?
    /// The latest recovery after a sender exited in the middle of the run; absent if there was none, and in lists.
    package var recovery: RecoveryResult?
    /// Absent in a run without stages, and in lists.
    package var stages: [StageResult]?
    /// The run that this run corrects; absent if it corrects none.
    package var corrects: CorrectionResult?
    /// Absent if the run had the approvals that it needed, or needed none, and in lists.
    package var brokenGlass: EmergencyOverrideResult?

    /// - Parameter holder: the process that has the run.
    package init(
        _ run: Run, heldBy holder: RunHolder? = nil, _ waits: RunWaits = RunWaits(), _ recovery: StoreEvent? = nil,
        stages: [StageRecord] = [], emergencyOverride: EmergencyOverride? = nil
    ) {
        brokenGlass = emergencyOverride.map(EmergencyOverrideResult.init)
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

/// The person who started a run without the required approvals, and the reason; keys are written in snake_case.
package struct EmergencyOverrideResult: Codable, Hashable, Sendable {
    package var at, by, reason: String

    init(_ broken: EmergencyOverride) { (at, by, reason) = (broken.at.iso8601, broken.by, broken.reason) }
}

extension EmergencyOverride {
    /// Returns the emergency override of a run. `nil` if the run had its approvals, or needed none.
    static func of(_ run: Run, in store: any AuditLog) async throws -> EmergencyOverride? {
        let filter = EventFilter(run: run.id, kind: EventKind.overridden.rawValue)
        guard let event = try await store.events(filter, before: nil, limit: 1).events.first,
            let reason = reason(in: event.detail)
        else { return nil }
        return EmergencyOverride(at: event.at, by: event.actor.name, reason: reason)
    }
}

/// The outcome of deliveries that a sender left in flight, in words, and the reason if its journal was not trusted.
package struct RecoveryResult: Codable, Hashable, Sendable {
    package var at, detail: String
}

/// Deliveries that wait; times in ISO 8601, UTC.
package struct WaitResult: Codable, Hashable, Sendable {
    /// `retry`, `quiet_hours`, `silent_budget`, `frequency_cap` or `wave`.
    package var reason: String
    /// Counted up to 10,000 for one moment.
    package var deliveries: Int
    /// `true` if more than `deliveries` wait; absent if the number is exact.
    package var isMore: Bool?
    package var firstAt: String
    package var lastAt: String
    /// Some of the devices' time zones, for a wave.
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

/// An endpoint in trouble that a run's sender backs off from.
package struct HoldResult: Codable, Hashable, Sendable {
    package var environment: String
    package var endpoint: String
    /// The status of its last response; absent if there was none.
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

/// A step of the wall clock.
package struct ClockStepResult: Codable, Hashable, Sendable {
    /// The time that the clock showed when the step was noticed, ISO 8601 and UTC.
    package var at: String
    /// Positive for a step forward, negative for a step back.
    package var milliseconds: Int64

    package init(_ step: ClockStep) {
        at = step.at.iso8601
        milliseconds = step.by.wholeMilliseconds
    }
}

/// The stable shape of `daemon` in `status --json`; keys are written in snake_case, times in ISO 8601 and UTC.
package struct DaemonResult: Codable, Hashable, Sendable {
    package var process: String
    /// As in ``RunResult``.
    package var processState: String?
    package var startedAt: String
    package var heartbeatAt: String
    package var campaigns: Int
    package var scheduled: Int
    package var problems: [DaemonStatus.Problem]
    package var readAt: String?
    /// The time of the last read without problems.
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
    /// Absent if there is no daemon.
    package var daemon: DaemonResult?
    /// Newest first.
    package var runs: [RunResult]
    /// Absent if the wall clock was not set in the last day.
    package var clockStep: ClockStepResult?
    /// The senders, the living ones first; absent if the store belongs to one machine.
    package var senders: [SenderResult]?
    /// Absent if all runs can be read.
    package var unreadable: [UnreadableRunResult]?
    /// Texts of files that wait for release; absent if there are none, or if they were not requested.
    package var pendingChanges: [ChangeResult]?
}

/// A run that this version cannot read, and does not touch.
package struct UnreadableRunResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    /// The state as it is stored.
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
    /// `alive`, `silent` (no heartbeat for some seconds) or `gone` (other senders take over its work).
    package var state: String
    /// Whether this sender starts the due occurrences for all senders.
    package var coordinator: Bool
    /// The number of the sender. A later sender has a higher number.
    package var term: Int64
    package var command: String?
    package var since: String
    package var heardAt: String
    package var lanes: Int
    /// The recent rate of APNs responses, per second.
    package var perSecond: Int
    package var runs: [Int64]
    /// `true` if it uses other campaigns or templates than the coordinator; absent otherwise.
    package var otherFiles: Bool?
    /// `true` if its heartbeats are so slow that it sends nothing while other senders do; absent otherwise.
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

    /// Returns the results in the order of the senders, and marks the senders whose files differ from the
    /// coordinator's.
    package static func all(_ senders: [SenderOnRecord]) -> [SenderResult] {
        let others = Set(senders.withOtherFiles.map(\.name))
        return senders.map { SenderResult($0, otherFiles: others.contains($0.name)) }
    }

    /// The warning for a sender with `otherFiles`.
    package var filesWarning: String {
        "\(process) has different campaigns or templates from the coordinator: the runs that start depend on which of them "
            + "coordinates; put the same files on all machines"
    }

    /// The warnings that an operator has to check.
    package var warnings: [String] {
        var warnings = otherFiles == true ? [filesWarning] : []
        if tooSlow == true {
            warnings.append(
                "\(process) sends nothing while other senders do: the database server responds to its heartbeats too "
                    + "slowly; check the network between that machine and the server")
        }
        return warnings
    }

    /// `coordinator`, `alive`, `too slow`, `silent` or `gone`.
    package var shownState: String {
        if coordinator { return "coordinator" }
        return tooSlow == true && state == "alive" ? "too slow" : state
    }
}
