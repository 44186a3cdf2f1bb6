import Campaigns
import Model

/// The page of a run.
struct RunPage: Sendable {
    struct Event: Sendable {
        var at: PageHTML
        var kind: String
        var actor: String
        var detail: PageHTML
    }

    /// Another run, which corrects this one or is corrected by it.
    struct Correction: Sendable {
        var run: Int64
        /// Whether the notification is removed instead of replaced.
        var isRecall: Bool
    }

    /// An action that the visitor may perform now.
    struct Action: Sendable {
        var address: String
        var label: String
        /// The number of deliveries that the action is about. It changes while the run is in progress. `nil` if the
        /// warning names none.
        var left: String?
        /// The effect of the action, shown beforehand.
        var warning: String
        var asksReason: Bool
        var isDangerous: Bool
        /// The devices that the action sends to. Empty while they are being counted.
        var sentTo = ""
        /// The name of their place in the live state. Empty if the action starts nothing.
        var sentToPlace = ""
        var isProduction = false
        /// The state of the run that the page shows. If the run has another state, the action is refused. `nil` for an
        /// action that does not depend on it.
        var seen: String?
        /// The stage that the button approves, as the page shows it.
        var stage: Int?
        /// The variant that the button sends to the rest.
        var variant: String?
    }

    var view: RunView
    var stage: String
    var problem: String?
    /// The counts as a bar, in HTML. The live state replaces this part of the page, and the three below.
    var sum: String
    /// The reasons, in HTML.
    var reasonTable: String
    /// The charts with their tables, in HTML.
    var charts: String
    /// The counts by language, variant and so on, in HTML.
    var sliceTables: String
    var events: [Event]
    var actions: [Action]
    /// The address of the button that stops the run immediately, without a question. `nil` if there is nothing to stop,
    /// or if the visitor may not stop it.
    var stopAddress: String?
    /// The address of the page that corrects the texts. `nil` if the visitor may not, or if there is nothing to
    /// correct.
    var correctAddress: String?
    var sent: SentContent
    /// The devices that the run has reached, by environment.
    private var reached: String
    /// The people behind the run.
    var people: [PlanView.Fact]
    var hasStages: Bool
    /// The address that compares the run with the one before of its campaign. `nil` if there is none.
    var compareAddress: String?
    /// The run that this run corrects.
    var corrects: Correction?
    /// The runs that correct this one.
    var correctedBy: [Correction]
    /// The person who started the run without its signatures, and the reason.
    var emergencyOverride: String?

    init(
        _ view: RunView, _ run: Run, _ figures: RunFigures, events: [EventResult], people: RunPeople,
        caller: Caller, problem: String?
    ) {
        self.view = view
        stage = view.stage
        sent = SentContent(run.definition)
        self.people = people.facts
        hasStages = !view.stages.isEmpty
        self.problem = problem
        sum = view.sum
        reasonTable = figures.reasons
        charts = figures.charts
        sliceTables = figures.slices
        corrects = run.definition.correction.map { Correction(run: $0.run, isRecall: $0.kind == .recall) }
        correctedBy = figures.correctedBy
        emergencyOverride =
            events.lazy.filter { $0.kind == EventKind.overridden.rawValue }.compactMap { event in
                EmergencyOverride.reason(in: event.detail).map {
                    "Started without its signatures by \(PersonName.shown(event.actorShown)): \($0)"
                }
            }.first
        self.events = events.reversed().map {
            Event(
                at: PageHTML(time: $0.at), kind: $0.kind.withSpaces, actor: PersonName.shown($0.actorShown),
                detail: PageHTML(message: $0.detail))
        }
        if !run.state.isFinal, run.state != .paused, caller.role.may(.halt) { stopAddress = "/runs/\(run.id)/stop" }
        if caller.role.may(.run), CorrectRun.isOffered(for: run) { correctAddress = "/runs/\(run.id)/correction" }
        actions =
            Self.actions(view, caller, sentTo: figures.pending, isRestored: run.halt == .restored)
        reached = figures.reached
    }

    /// Adds the action that removes a run's alerts, which may still be on a screen. Adds nothing if a recall has
    /// removed them, and no correction has shown them again.
    ///
    /// - Parameters:
    ///   - original: the run that sent the notification; `nil` if no recall belongs on the page.
    ///   - run: the run of the page, which may be a correction of the original one.
    mutating func offerRecall(of original: Run?, on run: Run, _ cases: UseCases, for caller: Caller) async throws {
        guard let original, caller.role.may(.run), CorrectRun.isOffered(for: original) else { return }
        let corrections = try await cases.correcting.corrections(of: original)
        let recall = corrections.last { $0.definition.correction?.kind == .recall }
        guard recall == nil || CorrectRun.mayRecallAgain(after: corrections) else { return }
        let devices = (original.counts.accepted + original.counts.unknown).counted("device")
        let what = run.id == original.id ? "it" : "run \(original.id)"
        let whom = "\(devices) that got \(what), the last devices first"
        let again = recall.map { recall in
            let shown = corrections.last { $0.id > recall.id }.map { "run \($0.id) has shown it again" }
            return "Run \(recall.id) was to remove the notification; \(shown ?? "it did not finish"). "
        }
        let action = Action(
            address: "/runs/\(original.id)/recall", label: "Remove it from the screens",
            warning: (again ?? "")
                + "A background push goes to the \(whom); an app that supports it removes the notification.",
            asksReason: false, isDangerous: true)
        actions.append(run.id == original.id ? action.sending(to: reached, RunFigures.reachedPlace) : action)
    }

    /// Returns the actions in order of need. People look first for the action that stops a run.
    ///
    /// - Parameter isRestored: whether the run waits because of a restored backup.
    private static func actions(
        _ view: RunView, _ caller: Caller, sentTo: String, isRestored: Bool
    ) -> [Action] {
        guard let state = RunState(rawValue: view.state), !state.isFinal else { return [] }
        var actions: [Action] = []
        if state != .paused, caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/pause", label: "Pause",
                    warning: "Sending stops within 2 seconds; the run continues when a person resumes it.",
                    asksReason: true,
                    isDangerous: false, seen: view.stateTag))
        }
        if view.awaitsApproval, !view.choices.isEmpty {
            if caller.role.may(.approve) {
                actions += view.choices.map { variant in
                    Action(
                        address: "/runs/\(view.run)/approve", label: "Send \(variant) to the rest",
                        warning: "The rest begins as soon as a process sends the run.", asksReason: false,
                        isDangerous: false, stage: view.stages.last?.number, variant: variant
                    ).sending(to: sentTo, RunFigures.pendingPlace)
                }
            }
        } else if view.awaitsApproval {
            if caller.role.may(.approve) {
                actions.append(
                    Action(
                        address: "/runs/\(view.run)/approve", label: "Approve the next stage",
                        warning: "The stage begins as soon as a process sends the run.", asksReason: false,
                        isDangerous: false,
                        stage: view.stages.first { $0.state == "waiting" }?.number
                    ).sending(to: sentTo, RunFigures.pendingPlace))
            }
        } else if state == .paused, caller.role.may(.run) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/resume", label: "Resume", left: view.left,
                    warning: isRestored
                        ? "may have been sent already, as the state says. Resume only if that is known."
                        : "are sent as planned, unless they have expired.", asksReason: true,
                    isDangerous: false, seen: view.stateTag
                ).sending(to: sentTo, RunFigures.pendingPlace))
        }
        if caller.role.may(.halt) {
            actions.append(
                Action(
                    address: "/runs/\(view.run)/cancel", label: "Cancel permanently", left: view.left,
                    warning: "will never be sent; this cannot be undone.", asksReason: true,
                    isDangerous: true, seen: view.stateTag))
        }
        return actions
    }
}

extension RunPage.Action {
    fileprivate func sending(to environments: String, _ place: String) -> Self {
        var action = self
        action.sentTo = environments
        action.sentToPlace = place
        action.isProduction = environments.contains(PushEnvironment.production.warningName)
        return action
    }
}
