import Campaigns
import Model

/// The page of a run.
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

    /// An action that the visitor may perform now.
    struct Action: Sendable {
        var address: String
        var label: String
        /// The effect of the action, shown beforehand.
        var warning: String
        var asksReason: Bool
        var isDangerous: Bool
        /// The devices that the action sends to. Empty if it starts nothing, or while they are being counted.
        var sentTo = ""
        var isProduction = false
        /// The stage that the button approves, as the page shows it.
        var stage: Int?
    }

    /// The figures for which the deliveries must be counted.
    struct Details: Sendable {
        var reasons: [Reason]
        var hasReasons: Bool
        var slices: [Slices]
        var attempts: String
        var possibleDuplicates: String
        var hasDuplicates: Bool
        /// `nil` if there are none, or if the number is not known.
        var mayHaveArrived: String?
        var devicesGone: String
        var devicesSuspended: String
    }

    var view: RunView
    var stage: String
    var problem: String?
    /// `nil` while the figures are being counted.
    var details: Details?
    /// The time of the figures, if the run is not over.
    var countedAt: String?
    /// The counts as a bar, in HTML.
    var sum: String
    /// The charts with their tables, in HTML.
    var charts: String
    var events: [Event]
    var actions: [Action]
    /// The address of the button that stops the run immediately, without a question. `nil` if there is nothing to stop,
    /// or if the visitor may not stop it.
    var stopAddress: String?
    /// The address of the page that corrects the texts. `nil` if the visitor may not, or if there is nothing to
    /// correct.
    var correctAddress: String?
    var hasStages: Bool
    /// The run that this run corrects.
    var corrects: String?
    /// The runs that correct this one.
    var correctedBy: [String]
    /// The person who started the run without its signatures, and the reason.
    var emergencyOverride: String?

    init(
        _ view: RunView, _ run: Run, _ counted: RunningReports.Counted?, charts: String,
        events: [EventResult], caller: Caller, problem: String?
    ) {
        self.view = view
        stage = view.stage
        hasStages = !view.stages.isEmpty
        self.problem = problem
        details = counted.map { Details($0.figure, run: view.run) }
        countedAt = view.isOver ? nil : counted.map { $0.at.iso8601.shownTime }
        sum = Chart.closedSum(CountsResult(run.counts)).picture
        corrects = run.definition.correction.map { "\($0.run)" }
        correctedBy = (counted?.figure.correctedBy ?? []).map { "\($0)" }
        emergencyOverride =
            events.lazy.filter { $0.kind == EventKind.overridden.rawValue }.compactMap { event in
                EmergencyOverride.reason(in: event.detail).map {
                    "Started without its signatures by \(event.actorShown): \($0)"
                }
            }.first
        self.charts = charts
        self.events = events.reversed().map {
            Event(
                at: $0.at.shownTimeAndZone, kind: $0.kind.withSpaces, actor: $0.actorShown,
                detail: $0.detail)
        }
        if !run.state.isFinal, run.state != .paused, caller.role.may(.halt) { stopAddress = "/runs/\(run.id)/stop" }
        if caller.role.may(.run), CorrectRun.isOffered(for: run) { correctAddress = "/runs/\(run.id)/correction" }
        let pending = counted.map { Self.environments($0.figure) { $0.pending } } ?? ""
        let reached = counted.map { Self.environments($0.figure) { $0.accepted + $0.unknown } } ?? ""
        actions =
            Self.actions(view, caller, sentTo: pending)
            + Self.recall(of: run, caller).map { $0.sending(to: reached) }
    }

    /// Returns the action that removes a run's alerts, which may still be on a screen.
    private static func recall(of run: Run, _ caller: Caller) -> [Action] {
        guard caller.role.may(.run), CorrectRun.isOffered(for: run) else { return [] }
        let whom = "\((run.counts.accepted + run.counts.unknown).counted("device")) that got it, the last devices first"
        return [
            Action(
                address: "/runs/\(run.id)/recall", label: "Remove it from the screens",
                warning: "A background push goes to the \(whom); an app that supports it removes the notification.",
                asksReason: false, isDangerous: true)
        ]
    }

    /// Returns a text such as `PRODUCTION: 18,812 devices, sandbox: 3 devices`.
    private static func environments(_ report: ReportResult, _ count: (CountsResult) -> Int) -> String {
        report.byEnvironment.compactMap { slice in
            let devices = count(slice.counts)
            return devices > 0 ? PushEnvironment(rawValue: slice.name)?.summary(devices: devices) : nil
        }.joined(separator: ", ")
    }

    /// Returns the actions in order of need. People look first for the action that stops a run.
    private static func actions(_ view: RunView, _ caller: Caller, sentTo: String) -> [Action] {
        guard let state = RunState(rawValue: view.state), !state.isFinal else { return [] }
        var actions: [Action] = []
        if state != .paused, caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/pause", label: "Pause",
                    warning: "Nothing more starts within 2 seconds; the run continues when a person resumes it.",
                    asksReason: true,
                    isDangerous: false))
        }
        if view.awaitsApproval {
            if caller.role.may(.approve) {
                actions.append(
                    Action(
                        address: "/runs/\(view.run)/approve", label: "Approve the next stage",
                        warning: "The stage begins as soon as a process sends the run.", asksReason: false,
                        isDangerous: false,
                        stage: view.stages.first { $0.state == "waiting" }?.number
                    ).sending(to: sentTo))
            }
        } else if state == .paused, caller.role.may(.run) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/resume", label: "Resume",
                    warning: "\(view.left) are sent as planned, unless they have expired.", asksReason: true,
                    isDangerous: false
                ).sending(to: sentTo))
        }
        if caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/cancel", label: "Cancel permanently",
                    warning: "\(view.left) will never be sent; this cannot be undone.", asksReason: true,
                    isDangerous: true))
        }
        return actions
    }
}

extension RunPage.Action {
    fileprivate func sending(to environments: String) -> Self {
        var action = self
        action.sentTo = environments
        action.isProduction = environments.contains(PushEnvironment.production.warningName)
        return action
    }
}

extension RunPage.Details {
    fileprivate init(_ report: ReportResult, run: Int64) {
        let reasons = [
            ("rejected", report.rejected), ("unknown", report.unknown), ("suppressed", report.suppressed),
        ].flatMap { state, reasons in reasons.map { RunPage.Reason($0, state, run) } }
        self.init(
            reasons: reasons, hasReasons: !reasons.isEmpty,
            slices: [
                ("By environment", report.byEnvironment), ("By locale", report.byLocale),
                ("By variant", report.byVariant), ("By stage", report.byStage), ("By wave (UTC)", report.byWave),
                ("By app version", report.byAppVersion), ("By country", report.byCountry),
                ("By time zone", report.byZone),
            ].filter { !$1.isEmpty }.map { RunPage.Slices(heading: $0, slices: $1.map(RunPage.Slice.init)) },
            attempts: report.attempts.grouped, possibleDuplicates: report.possibleDuplicates.grouped,
            hasDuplicates: report.possibleDuplicates > 0,
            mayHaveArrived: report.mayHaveArrived.flatMap { $0 > 0 ? $0.grouped : nil },
            devicesGone: report.devicesGone.grouped, devicesSuspended: report.devicesSuspended.grouped)
    }
}

extension RunPage.Reason {
    fileprivate init(_ reason: ReportResult.Reason, _ state: String, _ run: Int64) {
        self.init(
            state: state, reason: Chart.name(reason), count: reason.count.grouped,
            address: "/runs/\(run)/deliveries?state=\(state)&reason=\(reason.reason.inAddress)")
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

/// The current charts of a run.
struct RunCharts: Sendable {
    let html: String

    /// - Parameter report: the run's report, or `nil` while it is being counted.
    init(_ run: Run, _ report: ReportResult?, _ cases: UseCases) async throws {
        let timeline = try await cases.timelines.timeline(of: run)
        let waves = try await cases.runningReports.waves(of: run) ?? []
        html = ReportPage.charts(report, timeline, waves.map(WaveBar.init)).map(\.html).joined()
    }
}
