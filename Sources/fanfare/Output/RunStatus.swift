import Campaigns
import Model
import Sending
import Store

/// One run as it stands now.
struct RunStatus {
    private let run: Run

    init(_ run: Run) {
        self.run = run
    }

    /// What a run is after a change; a sender that still waits for answers is named.
    static func show(_ changed: ControlRun.Changed, json: Bool) throws {
        if let owner = changed.busyOwner {
            Console.note("\(ProcessName.shown(owner)) was told, and still waits for answers on their way")
        }
        Console.print(try RunStatus(changed.run).output(json: json))
    }

    func output(json: Bool) throws -> String {
        json ? try JSONOutput.text(RunResult(run)) : text
    }

    private var text: String {
        let counts = run.counts
        var page = Page()
        page.line("Run \(run.id): \(run.campaign), occurrence \(run.occurrence)")
        page.row("State", Self.state(run))
        if let owner = run.owner, let heartbeat = run.heartbeatAt {
            page.row("Process", "\(ProcessName.shown(owner)), heard of at \(heartbeat.iso8601)")
        }
        page.row(
            "Settled",
            "\(counts.settled.grouped) of \(counts.audience.grouped)\(run.isFrozen ? "" : " so far"): "
                + "\(counts.accepted.grouped) accepted, \(counts.rejected.grouped) rejected, "
                + "\(counts.unknown.grouped) unknown, \(counts.suppressed.grouped) suppressed")
        page.row("Left", "\(counts.pending.grouped) pending, \(counts.leased.grouped) in flight")
        return page.text
    }

    /// `paused by ray (uid 7): wrong link`.
    static func state(_ run: Run) -> String {
        let person = run.pausedBy.map { " by \($0)" } ?? ""
        return run.state.rawValue + person + (run.stateReason.map { ": \($0)" } ?? "")
    }

}

/// Runs, a line each.
struct RunList {
    let runs: [Run]
    /// Nil: there is none.
    let daemon: DaemonHeartbeat?

    init(_ overview: FollowRuns.Overview) {
        runs = overview.runs
        daemon = overview.daemon
    }

    var text: String { ([daemon?.text].compactMap(\.self) + [table]).joined(separator: "\n\n") }

    private var table: String {
        guard !runs.isEmpty else { return "no runs yet; start one with `fanfare run CAMPAIGN`" }
        let names = runs.map { "\($0.campaign)/\($0.occurrence)" }
        let width = max(10, names.map(\.count).max() ?? 0)
        let heading =
            "run".rightAligned(to: 5) + "  " + "occurrence".padded(to: width)
            + ["audience", "accepted", "rejected", "unknown", "suppressed", "left"].map { $0.rightAligned(to: 12) }
            .joined()
            + "  state"
        return ([heading] + zip(runs, names).map { Self.line($0, name: $1, width: width) }).joined(separator: "\n")
    }

    private static func line(_ run: Run, name: String, width: Int) -> String {
        let counts = run.counts
        let numbers = [
            counts.audience, counts.accepted, counts.rejected, counts.unknown, counts.suppressed,
            counts.pending + counts.leased,
        ]
        return "\(run.id)".rightAligned(to: 5) + "  " + name.padded(to: width)
            + numbers.map { $0.grouped.rightAligned(to: 12) }.joined() + "  " + RunStatus.state(run)
    }

}
