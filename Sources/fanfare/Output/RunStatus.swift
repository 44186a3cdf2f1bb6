import Model
import Store

/// One run as it stands now.
struct RunStatus {
    private let run: Run

    init(_ run: Run) {
        self.run = run
    }

    func output(json: Bool) throws -> String {
        json ? try JSONOutput.text(self.json) : text
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

    /// The stable shape of `status RUN --json`, and of each run of `status --json`; keys are written in snake_case.
    struct JSON: Encodable {
        var run: Int64
        var campaign: String
        var occurrence: String
        var state: String
        var stateReason: String?
        /// The person it waits for; absent where it paused itself.
        var pausedBy: String?
        /// Host and process id; absent when no process sends it.
        var process: String?
        /// ISO 8601, UTC.
        var heartbeatAt: String?
        var createdAt: String
        var startedAt: String?
        var finishedAt: String?
        /// False while the audience is still being written down.
        var frozen: Bool
        var test: Bool
        var counts: ReportJSON.Account
    }

    var json: JSON {
        JSON(
            run: run.id, campaign: run.campaign, occurrence: run.occurrence, state: run.state.rawValue,
            stateReason: run.stateReason, pausedBy: run.pausedBy, process: run.owner.map(ProcessName.shown),
            heartbeatAt: run.heartbeatAt?.iso8601, createdAt: run.createdAt.iso8601, startedAt: run.startedAt?.iso8601,
            finishedAt: run.finishedAt?.iso8601, frozen: run.isFrozen, test: run.isTest,
            counts: ReportJSON.Account(run.counts))
    }
}

/// Runs, a line each.
struct RunList {
    let runs: [Run]
    /// Nil: there is none.
    let daemon: DaemonHeartbeat?

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

    struct JSON: Encodable {
        /// Absent: there is none.
        var daemon: DaemonHeartbeat.JSON?
        var runs: [RunStatus.JSON]
    }

    var json: JSON { JSON(daemon: daemon?.json, runs: runs.map { RunStatus($0).json }) }
}
