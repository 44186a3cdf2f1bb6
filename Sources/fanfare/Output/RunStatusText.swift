import Campaigns
import Daemon
import Foundation
import Model
import Senders
import Store

/// The current state of one run, as text or JSON.
struct RunStatus {
    private let held: FollowRuns.Held
    private let now: Timestamp
    /// The step of the wall clock since the run was created. `nil` if there was none.
    private let clockStep: ClockStep?
    /// The daemon. `nil` if there is none.
    private let daemon: FollowRuns.Daemon?
    private var run: Run { held.run }

    init(_ held: FollowRuns.Held, _ daemon: FollowRuns.Daemon?, now: Timestamp, clockStep: ClockStep? = nil) {
        self.held = held
        self.daemon = daemon
        self.now = now
        self.clockStep = clockStep.flatMap { $0.at >= held.run.createdAt ? $0 : nil }
    }

    static func noteBusyOwner(_ changed: ControlRun.Changed, _ runs: FollowRuns) {
        guard let owner = changed.busyOwner else { return }
        let holder = runs.holder(owner)
        // A sender stopped by SIGSTOP obeys as soon as it continues. Any other one waits for responses.
        let state = holder.state == .stopped ? "has not confirmed it yet" : "still waits for responses"
        Console.note("\(holder.summary) was notified, and \(state)")
    }

    /// Prints the run after a change, and names a sender that has not confirmed the change.
    static func show(_ changed: ControlRun.Changed, _ runs: FollowRuns, json: Bool) async throws {
        noteBusyOwner(changed, runs)
        let status = RunStatus(runs.held(changed.run), try await runs.daemon(), now: runs.now)
        Console.print(try status.output(json: json))
    }

    func output(json: Bool) throws -> String {
        json ? try ResultJSON.text(held.result) : text
    }

    private var text: String {
        let counts = run.counts
        var page = Page()
        page.line("Run \(run.id): \(run.campaign), occurrence \(run.occurrence)")
        page.row("State", Self.state(run))
        if let broken = held.emergencyOverride { page.row("Unsigned", broken.summary) }
        if let holder = held.holder {
            let heard = run.heartbeatAt.map { ", last heartbeat at \($0.iso8601)" } ?? ""
            page.row("Process", holder.summary + heard)
        } else if held.isLeft, let daemon, daemon.takesUpRuns {
            page.row("Process", "the daemon (\(daemon.holder.process)) picks it up within seconds")
        } else if held.isLeft {
            page.row(
                "Process", "no process sends it; start the daemon, or continue it with `fanfare run` and its occurrence"
            )
        }
        page.row(
            "Settled",
            "\(counts.settled.grouped) of \(counts.audience.grouped)\(AudienceNote.mark(of: run).map { " \($0)" } ?? ""): "
                + "\(counts.accepted.grouped) accepted, \(counts.rejected.grouped) rejected, "
                + "\(counts.unknown.grouped) unknown, \(counts.suppressed.grouped) suppressed")
        page.row("Remaining", "\(counts.pending.grouped) pending, \(counts.leased.grouped) in flight")
        for stage in held.result.stages ?? [] { page.row("Stage \(stage.stage)", stage.summary) }
        page.row("Waiting", WaitsText(held.waits, held.holder?.storeWait, now: now).sentences)
        if let recovery = held.recovery { page.row("Recovered", "\(recovery.at.iso8601), \(recovery.detail)") }
        if let clockStep { page.row("Clock", clockStep.description) }
        return page.text
    }

    static func state(_ run: Run) -> String { RunResult(run).stateSummary }

    /// Returns the state in one line, such as `running, held by web1:4711 (stopped)`. Omits a process that is known to
    /// run.
    static func line(_ held: FollowRuns.Held, _ daemon: FollowRuns.Daemon?, now: Timestamp) -> String {
        let holder = held.holder.flatMap {
            $0.state == .running ? nil : ", held by \($0.process) (\($0.state.rawValue))"
        }
        let next = daemon?.takesUpRuns == true ? ", the daemon picks it up" : ", no process sends it"
        let noSender = held.isLeft ? next : ""
        let wait = held.holder?.storeWait == nil ? "" : ", waiting for the store"
        let holds = WaitsText(held.waits, now: now).holds.map { ", \($0)" }.joined()
        return state(held.run) + (holder ?? noSender) + wait + holds
    }
}

/// A list of runs, one line each.
struct RunList {
    /// The maximum number of characters shown of a campaign and its occurrence. A name may have 1,000 bytes.
    private static let nameMax = 60

    let runs: [FollowRuns.Held]
    /// The daemon. `nil` if there is none.
    let daemon: FollowRuns.Daemon?
    let clockStep: ClockStep?
    private let senders: [SenderResult]
    private let unreadable: [String]
    private let now: Timestamp

    init(_ overview: FollowRuns.Overview, now: Timestamp) {
        self.now = now
        unreadable = overview.unreadable.map { "error: \($0.campaign): \($0.error)" }
        senders = SenderResult.all(overview.senders ?? [])
        runs = overview.runs
        daemon = overview.daemon
        clockStep = overview.clockStep
    }

    var text: String {
        let problems = unreadable.isEmpty ? nil : unreadable.joined(separator: "\n")
        return ([daemon?.text, clockStep?.description, senderTable, problems].compactMap(\.self) + [table])
            .joined(separator: "\n\n")
    }

    /// The table of senders, for a store that several machines share.
    private var senderTable: String? {
        guard !senders.isEmpty else { return nil }
        let width = max(8, senders.map(\.process.count).max() ?? 0)
        let heading =
            "sender".padded(to: width) + "  state        lanes    per s   term  since                     runs"
        let lines = senders.map { sender in
            sender.process.padded(to: width) + "  " + sender.shownState.padded(to: 11)
                + "\(sender.lanes)".rightAligned(to: 7) + sender.perSecond.grouped.rightAligned(to: 9)
                + "\(sender.term)".rightAligned(to: 7) + "  " + sender.since.padded(to: 26)
                + sender.runs.map { "\($0)" }.joined(separator: ", ")
        }
        let warnings = senders.flatMap(\.warnings).map { "warning: \($0)" }
        return ([heading] + lines + warnings).map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
    }

    private var table: String {
        guard !runs.isEmpty else { return "no runs yet; start one with `fanfare run CAMPAIGN`" }
        let names = runs.map { Self.shown("\($0.run.campaign)/\($0.run.occurrence)") }
        let width = max(10, names.map(\.count).max() ?? 0)
        let heading =
            "run".rightAligned(to: 5) + "  " + "occurrence".padded(to: width)
            + ["audience", "accepted", "rejected", "unknown", "suppressed", "left"].map { $0.rightAligned(to: 12) }
            .joined()
            + "  state"
        return ([heading] + zip(runs, names).map { line($0, name: $1, width: width) }).joined(separator: "\n")
    }

    /// Shortens a name in the middle, because its campaign and its end distinguish it from others.
    static func shown(_ name: String) -> String {
        guard name.count > nameMax else { return name }
        return "\(name.prefix(nameMax / 2))…\(name.suffix(nameMax / 2 - 1))"
    }

    private func line(_ held: FollowRuns.Held, name: String, width: Int) -> String {
        let run = held.run
        let counts = run.counts
        let numbers = [
            counts.audience, counts.accepted, counts.rejected, counts.unknown, counts.suppressed,
            counts.pending + counts.leased,
        ]
        return "\(run.id)".rightAligned(to: 5) + "  " + name.padded(to: width)
            + numbers.map { $0.grouped.rightAligned(to: 12) }.joined() + "  " + RunStatus.line(held, daemon, now: now)
    }

}

extension DaemonStatus {
    /// The state of the daemon, in one line.
    var line: String {
        var parts = ["\(campaigns.counted("campaign")), \(scheduled.grouped) scheduled"]
        if let nextStart, let nextCampaign { parts.append("next \(nextCampaign) at \(nextStart.shown)") }
        if !running.isEmpty { parts.append(running.count.counted("run")) }
        if !problems.isEmpty { parts.append(problems.count.counted("file wrong", "files wrong")) }
        return parts.joined(separator: "; ")
    }
}

extension FollowRuns.Daemon {
    /// The text for `status`: one line for the daemon, followed by the problems of its files.
    var text: String {
        let status = heartbeat.status
        let problems = status.problems.flatMap { problem in
            problem.messages.map { "  " + $0 }
                + (problem.keepsOld ? ["  \(problem.path): the earlier version stays in use"] : [])
        }
        let state = holder.state == .running ? "" : " (\(holder.state.rawValue))"
        return (["daemon \(holder.process)\(state): \(status.line)"] + problems).joined(separator: "\n")
    }

}

/// Shows runs in progress: a page that updates itself on a terminal, or one page after the other elsewhere.
struct StatusWatch {
    let runs: FollowRuns
    /// The run to watch. `nil` means the latest runs.
    let run: Int64?
    let limit: Int
    let interval: Duration

    /// Shows pages until the watched run is over, or the task is cancelled.
    func show() async throws {
        let clock = ContinuousClock()
        var last: (sent: [Int64: Int], at: ContinuousClock.Instant)?
        while true {
            let overview = try await overview()
            let runs = overview.runs.map(\.run)
            let now = clock.now
            let rates = runs.map { run in Self.rate(run, last, now) }
            page(overview, rates, try await waits(overview, rates))
            last = (Dictionary(uniqueKeysWithValues: runs.map { ($0.id, $0.counts.sent) }), now)
            if run != nil, runs.allSatisfy(\.state.isFinal) { return }
            try await Task.sleep(for: interval)
        }
    }

    private func overview() async throws -> FollowRuns.Overview {
        guard let run else { return try await runs.overview(limit: limit) }
        return try await runs.overview(of: run)
    }

    private static func rate(
        _ run: Run, _ last: (sent: [Int64: Int], at: ContinuousClock.Instant)?, _ now: ContinuousClock.Instant
    ) -> Int? {
        guard !run.state.isFinal, let last, let before = last.sent[run.id] else { return nil }
        return Int(Double(run.counts.sent - before) / max((now - last.at).inSeconds, 0.001))
    }

    /// Returns what the watched run waits for, while few of its deliveries are settled.
    private func waits(_ overview: FollowRuns.Overview, _ rates: [Int?]) async throws -> [String] {
        guard run != nil, let run = overview.runs.first?.run, let rate = rates.first ?? nil,
            rate < ProgressTail.littleMax
        else { return [] }
        return WaitsText(try await runs.waits(of: run), now: runs.now).sentences
    }

    private func page(_ overview: FollowRuns.Overview, _ rates: [Int?], _ waits: [String]) {
        var lines = [RunList(overview, now: runs.now).text]
        for (run, rate) in zip(overview.runs.map(\.run), rates) {
            guard let rate else { continue }
            let rest = waits.isEmpty ? Self.timeLeft(run, rate) : waits.map { "; " + $0 }.joined()
            lines.append("run \(run.id): \(max(0, rate).grouped) sent/s\(rest)")
        }
        // Move the cursor to the top, and clear the previous page.
        let home = isatty(STDOUT_FILENO) == 1 ? "\u{1B}[H\u{1B}[2J" : ""
        Console.print(home + lines.joined(separator: "\n"))
    }

    private static func timeLeft(_ run: Run, _ rate: Int) -> String {
        let left = run.counts.pending + run.counts.leased
        guard run.isFrozen, rate > 0, left > 0 else { return "" }
        return ", \(WrittenDuration.text(.seconds(left / rate + 1))) remaining"
    }
}
