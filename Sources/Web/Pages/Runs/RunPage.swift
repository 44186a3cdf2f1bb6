import Campaigns
import Model
import Synchronization

/// A run, whole.
struct RunPage: Sendable {
    struct Reason: Sendable {
        var state: String
        var reason: String
        var count: String
        var address: String
    }

    struct Slice: Sendable {
        var name: String
        var audience: String
        var accepted: String
        var rejected: String
        var unknown: String
        var suppressed: String
    }

    struct Slices: Sendable {
        var heading: String
        var slices: [Slice]
    }

    struct Event: Sendable {
        var at: String
        var kind: String
        var actor: String
        var detail: String
    }

    /// Something that may be done now, by whoever looks.
    struct Action: Sendable {
        var address: String
        var label: String
        /// What will happen, before it does.
        var warning: String
        var asksReason: Bool
        var isDangerous: Bool
    }

    var view: RunView
    var stage: String
    var problem: String?
    var reasons: [Reason]
    var hasReasons: Bool
    var slices: [Slices]
    /// The account as a bar, ready.
    var sum: String
    /// SVG and tables, ready.
    var charts: String
    var attempts: String
    var possibleDuplicates: String
    var hasDuplicates: Bool
    var devicesGone: String
    var devicesSuspended: String
    var events: [Event]
    var actions: [Action]

    init(
        _ view: RunView, _ report: ReportResult, charts: String, events: [EventResult], caller: Caller, problem: String?
    ) {
        self.view = view
        stage = view.stage
        self.problem = problem
        reasons =
            Self.reasons(report.rejected, "rejected", view.run) + Self.reasons(report.unknown, "unknown", view.run)
            + Self.reasons(report.suppressed, "suppressed", view.run)
        hasReasons = !reasons.isEmpty
        slices = [
            ("By environment", report.byEnvironment), ("By locale", report.byLocale), ("By variant", report.byVariant),
        ].filter { !$1.isEmpty }.map { Slices(heading: $0, slices: $1.map(Slice.init)) }
        sum = Chart.closedSum(report.counts).picture
        self.charts = charts
        attempts = report.attempts.grouped
        possibleDuplicates = report.possibleDuplicates.grouped
        hasDuplicates = report.possibleDuplicates > 0
        devicesGone = report.devicesGone.grouped
        devicesSuspended = report.devicesSuspended.grouped
        self.events = events.reversed().map {
            Event(
                at: $0.at.shownTime + " UTC", kind: $0.kind.inWords, actor: $0.actorShown,
                detail: $0.detail)
        }
        actions = Self.actions(view, caller)
    }

    private static func reasons(_ reasons: [ReportResult.Reason], _ state: String, _ run: Int64) -> [Reason] {
        reasons.map { reason in
            Reason(
                state: state,
                reason: Chart.name(reason),
                count: reason.count.grouped,
                address: "/runs/\(run)/deliveries?state=\(state)&reason=\(reason.reason.inAddress)")
        }
    }

    /// In order of need: to stop is the first thing somebody looks for.
    private static func actions(_ view: RunView, _ caller: Caller) -> [Action] {
        guard let state = RunState(rawValue: view.state), !state.isFinal else { return [] }
        var actions: [Action] = []
        if state != .paused, caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/pause", label: "Pause",
                    warning: "Nothing more starts within 2 seconds; it goes on when somebody resumes it.",
                    asksReason: true,
                    isDangerous: false))
        }
        if state == .paused, caller.role.may(.run) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/resume", label: "Resume",
                    warning: "\(view.left) go out as they were planned, unless they have expired.", asksReason: false,
                    isDangerous: false))
        }
        if caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/cancel", label: "Cancel for good",
                    warning: "\(view.left) will never be sent; this cannot be taken back.", asksReason: true,
                    isDangerous: true))
        }
        return actions
    }
}

extension RunPage.Slice {
    fileprivate init(_ slice: ReportResult.Slice) {
        let counts = slice.counts
        self.init(
            name: slice.name, audience: counts.audience.grouped, accepted: counts.accepted.grouped,
            rejected: counts.rejected.grouped, unknown: counts.unknown.grouped, suppressed: counts.suppressed.grouped)
    }
}

/// The charts of a run, as they are now.
struct RunCharts: Sendable {
    let html: String

    init(_ run: Run, _ report: ReportResult, _ waves: RunWaves, _ cases: UseCases) async throws {
        let timeline = try await cases.timelines.timeline(of: run)
        html = ReportPage.charts(report, timeline, try await waves.of(run, cases)).map(\.html).joined()
    }
}

/// The planned waves of the runs that were looked at last: to count them reads every delivery, and they do not change.
final class RunWaves: Sendable {
    private static let runsMax = 20

    private let known = Mutex<[(run: Int64, waves: [WaveBar])]>([])

    func of(_ run: Run, _ cases: UseCases) async throws -> [WaveBar] {
        if let waves = known.withLock({ $0.first { $0.run == run.id }?.waves }) { return waves }
        let waves = try await cases.timelines.waves(of: run).map(WaveBar.init)
        // A run that is not frozen has none yet.
        guard run.isFrozen else { return waves }
        known.withLock { known in
            known.append((run.id, waves))
            if known.count > Self.runsMax { known.removeFirst() }
        }
        return waves
    }
}
