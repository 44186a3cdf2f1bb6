import Foundation
import Model
import Senders
import Store

/// Reads the health of the service for an operator on call: one sentence first, then all checks, the worst first.
///
/// The read is cheap: no check reads a table that grows, and the state of the installation is that of the last minute.
package struct ReadHealth: Sendable {
    /// The size, in bytes, above which the log is too long. A long read keeps the log from shrinking.
    private static let logBytesMax = 512 << 20
    /// The time after which an overdue push counts as not being sent.
    private static let overdueMax: Duration = .seconds(300)
    private static let silenceMax: Duration = .seconds(60)
    private static let runsLooked = 50
    /// The time for which a run that failed or was missed is reported.
    private static let endedShown: Duration = .seconds(86_400)
    /// The maximum number of such runs that are named.
    private static let endedNamed = 10

    private let store: any StoreUpkeep & SenderLog & DaemonLog & OccurrenceValueLog
    private let following: FollowRuns
    private let installation: InstallationHealth?
    private let clock: WallClock
    private let campaigns: CurrentCampaigns

    init(
        store: any StoreUpkeep & SenderLog & DaemonLog & OccurrenceValueLog, following: FollowRuns,
        installation: InstallationHealth?,
        clock: WallClock, campaigns: CurrentCampaigns
    ) {
        self.campaigns = campaigns
        self.store = store
        self.following = following
        self.installation = installation
        self.clock = clock
    }

    package func read() async -> HealthResult {
        let now = clock.now()
        let machine = await installation?.latest() ?? []
        let begun = clock.uptime()
        do {
            let observation = ObservationResult(try await store.observation(now: now), now: now)
            let size = try await store.size()
            let answered = clock.uptime() - begun
            let overview = try await following.overview(limit: Self.runsLooked)
            let stops = try await following.stops()
            let checks =
                [storeCheck(size.bytes, answered)] + (try await server()) + file(observation, size.bytes)
                + [daemon(overview.daemon, now)] + (try await missingValues(files(overview.daemon), now))
                + otherFiles(overview)
                + clockStep(overview) + self.stops(stops)
                + (try await runs(overview, observation, stops)) + (try await webhooks(now)) + machine
            return HealthResult(at: now, checks: checks, overview: overview.result, queues: observation.queues)
        } catch {
            let checks = Finding.sentences(of: error).map { Finding.wrong(.store, $0) }
            return HealthResult(at: now, checks: checks + machine, overview: nil, queues: [])
        }
    }

    private func storeCheck(_ bytes: Int, _ answered: Duration) -> Finding {
        let summary = "\(store.path): \(bytes / 1_000_000) MB, responded in \(max(1, answered.wholeMilliseconds)) ms"
        let place = StoreAddress(store.path).isURL ? "server" : "disk"
        return answered > .seconds(1)
            ? .warning(.store, "\(summary), which is slow; check the \(place)") : .ok(.store, summary)
    }

    private func server() async throws -> [Finding] {
        guard let server = try await store.server() else { return [] }
        return ServerChecks(server: server, senders: try await store.senders()).warnings.filter { $0.state != .skipped }
    }

    /// Returns the additional checks of a store that is a file of this machine.
    private func file(_ observation: ObservationResult, _ bytes: Int) -> [Finding] {
        guard !StoreAddress(store.path).isURL else { return [] }
        return [journal(observation)]
            + StoreChecks.disk(URL(fileURLWithPath: store.path).deletingLastPathComponent().path, storeBytes: bytes)
    }

    private func journal(_ observation: ObservationResult) -> Finding {
        let summary = "the store's log is \(observation.logBytes / 1_000_000) MB"
        guard observation.logBytes > Self.logBytesMax else { return .ok(.log, summary) }
        return .warning(
            .log, "\(summary): an export or a backup has been reading for a long time; the log shrinks when that ends")
    }

    private func daemon(_ daemon: FollowRuns.Daemon?, _ now: Timestamp) -> Finding {
        guard let daemon else {
            return .warning(.daemon, "none is running: schedules and feeds start nothing; run: systemctl start fanfare")
        }
        let silent = now - daemon.heartbeat.heartbeatAt
        let name = ProcessName.shown(daemon.heartbeat.owner)
        if daemon.holder.state == .stopped {
            return .wrong(
                .daemon, "\(name) is stopped by a signal and does nothing; run: kill -CONT its process, or restart it")
        }
        if silent > Self.silenceMax {
            return .wrong(
                .daemon,
                "\(name) has had no heartbeat for \(WrittenDuration.text(.seconds(Int(silent.inSeconds)))); look at "
                    + "its log, and restart it"
            )
        }
        let next = daemon.heartbeat.status.nextStart.map {
            "; next: \(daemon.heartbeat.status.nextCampaign ?? "a campaign") at \($0.iso8601)"
        }
        return .ok(
            .daemon,
            "\(name) has been running since \(daemon.heartbeat.startedAt.iso8601)\(next ?? "; nothing is scheduled")")
    }

    private func files(_ daemon: FollowRuns.Daemon?) -> [Finding] {
        guard let status = daemon?.heartbeat.status else {
            return [.skipped(.files, "could not check the campaign files, because no daemon is running")]
        }
        let problems = status.problems.map { problem in
            let summary = problem.messages.joined(separator: "\n")
            return problem.keepsOld
                ? Finding.warning(.files, summary + "\nthe earlier version stays in use") : .wrong(.files, summary)
        }
        return problems.isEmpty ? [.ok(.files, "\(status.campaigns.counted("campaign")), no errors")] : problems
    }

    /// Adds the scheduled campaigns that will fail because a variable has no value.
    private func missingValues(_ found: [Finding], _ now: Timestamp) async throws -> [Finding] {
        let failing = campaigns.failing(after: now, try await .read(store, now: now)).map { Finding.wrong(.files, $0) }
        return failing.isEmpty ? found : failing + found.filter { $0.state != .ok }
    }

    private func otherFiles(_ overview: FollowRuns.Overview) -> [Finding] {
        SenderResult.all(overview.senders ?? []).filter { $0.otherFiles == true }
            .map { .warning(.files, $0.filesWarning) }
    }

    private func clockStep(_ overview: FollowRuns.Overview) -> [Finding] {
        guard let step = overview.clockStep else { return [] }
        return [
            .warning(
                .clock,
                "the wall clock jumped by \(step.by.wholeMilliseconds) ms at \(step.at.iso8601); check that NTP controls "
                    + "it"
            )
        ]
    }

    private func stops(_ stops: StopOrders) -> [Finding] {
        stops.orders.filter { !$0.scope.isOfOneRun }.map {
            .warning(.stops, "\($0.summary); nothing is sent there until the stop is lifted")
        }
    }

    private func runs(
        _ overview: FollowRuns.Overview, _ observation: ObservationResult, _ stops: StopOrders
    ) async throws -> [Finding] {
        var found = try await following.halted().map { run in
            Finding.wrong(
                .runs,
                "run \(run.id) of \(run.campaign) waits for a person: "
                    + "\(run.stateReason ?? "it paused automatically"); resume or cancel it")
        }
        found += overview.unreadable.map { .wrong(.runs, "\($0.campaign): \($0.error)") }
        // A stop is its own finding, and the reason why these runs wait.
        let stopped = Set(overview.runs.map(\.run).filter { stops.order(of: $0) != nil }.map(\.id))
        for held in overview.runs where !held.run.state.isFinal && !stopped.contains(held.run.id) {
            found += try await findings(held)
        }
        found += try await ended()
        var seen: Set<String> = []
        for run in overview.runs.map(\.run) where seen.insert(run.campaign).inserted && run.halt == .unsuccessful {
            found.append(
                .warning(
                    .runs,
                    "run \(run.id) of \(run.campaign) finished without success: \(run.stateReason ?? ""); look at "
                        + "`fanfare report \(run.id)`"))
        }
        for queue in observation.queues
        where queue.overdueSeconds > Self.overdueMax.inSeconds && !stopped.contains(queue.run) {
            let late = WrittenDuration.text(.seconds(Int(queue.overdueSeconds)))
            found.append(
                .warning(
                    .runs, "run \(queue.run) of \(queue.campaign) has pushes that were due \(late) ago and are unsent"
                ))
        }
        let going = observation.runs[.running] ?? 0
        return found.isEmpty ? [.ok(.runs, going == 0 ? "no run is in progress" : "\(going) in progress")] : found
    }

    /// Returns the runs of the last day that failed or were missed.
    private func ended() async throws -> [Finding] {
        let runs = try await following.ended(in: [.failed, .missed], since: clock.now() - Self.endedShown)
        let named = runs.prefix(Self.endedNamed).map { run in
            let reason = run.stateReason.map { ": \($0)" } ?? ""
            let what = run.state == .missed ? "was missed" : "failed"
            return Finding.warning(
                .runs,
                "run \(run.id) of \(run.campaign) (\(run.occurrence)) \(what) at "
                    + "\((run.finishedAt ?? run.createdAt).iso8601)\(reason)")
        }
        let rest = runs.count - named.count
        return named
            + (rest > 0
                ? [.warning(.runs, "also failed or missed in the last 24 hours: \(rest.counted("earlier run"))")]
                : [])
    }

    private func findings(_ held: FollowRuns.Held) async throws -> [Finding] {
        let (run, name) = (held.run, "run \(held.run.id) of \(held.run.campaign)")
        if run.state == .paused, run.halt == nil {
            return [
                .warning(.runs, "\(name) was paused by \(run.pausedBy ?? "a person"); resume it to continue")
            ]
        }
        if let next = HaltRetry.nextTry(of: run) {
            return [
                .wrong(
                    .runs,
                    "\(name) paused automatically: \(run.stateReason ?? "APNs cannot be reached"); the daemon, or "
                        + "`fanfare run --due`, retries after \(next.iso8601)")
            ]
        }
        guard run.state == .running else { return [] }
        if held.holder?.state ?? .ended == .ended {
            return [
                .warning(
                    .runs,
                    "\(name) has no sender: the last one has exited; start the daemon, or use `fanfare run` to continue it"
                )
            ]
        }
        if let wait = held.holder?.storeWait {
            return [
                .wrong(.runs, "\(name) has waited for the store since \(wait.since.iso8601): \(wait.reason.rawValue)")
            ]
        }
        return try await following.waits(of: run).holds.map { hold -> Finding in
            guard !hold.isRetrying else {
                return .wrong(
                    .runs,
                    "\(name) waits: APNs has been unreachable at \(hold.endpoint) since \(hold.since.iso8601); it is "
                        + "retried"
                )
            }
            return .wrong(
                .runs,
                "\(name) has backed off from \(hold.endpoint) since \(hold.since.iso8601): "
                    + (hold.status.map { "it responds \($0)" } ?? "it does not respond")
                    + "; next try at \(hold.nextTryAt.iso8601)")
        }
    }

    private func webhooks(_ now: Timestamp) async throws -> [Finding] {
        guard let next = try await store.nextWebhookMessage(), now - next > Self.overdueMax else { return [] }
        return [
            .warning(
                .webhooks, "messages to webhooks have waited since \(next.iso8601); check their server and the log")
        ]
    }
}

/// The stable shape of the response of `/api/v1/health`.
package struct HealthResult: Codable, Hashable, Sendable {
    package struct Check: Codable, Hashable, Sendable {
        /// `configuration`, `files`, `credential`, `rights`, `clock`, `limits`, `store`, `log`, `daemon`, `disk`,
        /// `proxy`, `runs`, `stops` or `webhooks`.
        package var check: String
        /// `ok`, `warning` or `wrong`. `skipped` if the check could not be made; the message says why.
        package var state: String
        package var message: String
    }

    package struct Queue: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        package var overdueSeconds: Double
    }

    package var at: String
    /// The worst state of the checks.
    package var state: String
    /// One sentence: the worst finding, or that all is well.
    package var verdict: String
    /// The worst first.
    package var checks: [Check]
    /// Absent if no daemon is alive.
    package var daemon: DaemonResult?
    /// Absent if the store belongs to one machine.
    package var senders: [SenderResult]?
    /// The queues of the runs that are not over.
    package var queues: [Queue]

    init(at now: Timestamp, checks: [Finding], overview: RunListResult?, queues: [ObservationResult.Queue]) {
        at = now.iso8601
        let order: [Finding.State] = [.wrong, .warning, .ok, .skipped]
        self.checks = order.flatMap { state in checks.filter { $0.state == state } }
            .map { Check(check: $0.check.rawValue, state: $0.state.rawValue, message: $0.message) }
        daemon = overview?.daemon
        senders = overview?.senders
        self.queues = queues.map {
            Queue(
                run: $0.run, campaign: $0.campaign, pending: $0.pending, leased: $0.leased,
                overdueSeconds: $0.overdueSeconds)
        }
        (state, verdict) = ("", "")
        judge()
    }

    /// The checks that name no app, no campaign and no file of the configuration.
    private static let ofTheService = Set(
        [Finding.Check.clock, .limits, .store, .log, .daemon, .disk, .webhooks].map(\.rawValue))

    /// The health without facts about all apps, for a caller that is confined to one app.
    package var ofTheServiceAlone: HealthResult {
        var result = self
        result.checks.removeAll { !Self.ofTheService.contains($0.check) }
        result.queues = []
        result.daemon = nil
        result.senders = nil
        result.judge()
        return result
    }

    private mutating func judge() {
        let bad = checks.filter { [Finding.State.wrong, .warning].map(\.rawValue).contains($0.state) }
        guard let worst = bad.first else {
            state = Finding.State.ok.rawValue
            let daemon = checks.first { $0.check == Finding.Check.daemon.rawValue }?.message
            let unknown = checks.count { $0.state == Finding.State.skipped.rawValue }
            let except = unknown > 0 ? ", but \(unknown.counted("check")) could not be made" : ""
            verdict = "No problems found" + except + (daemon.map { "; the daemon \($0)" } ?? "")
            return
        }
        state = worst.state
        let rest = bad.count > 1 ? " (and \(bad.count - 1) more)" : ""
        verdict = (worst.message.split(separator: "\n").first.map(String.init) ?? worst.message) + rest
    }
}
