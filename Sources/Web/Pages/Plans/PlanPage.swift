import Campaigns
import Model

/// The list of plans, the newest first.
struct PlanList: Sendable {
    struct Row: Sendable {
        var address: String
        var name: String
        var campaign: String
        var excerpt: String
        var reach: String
        var state: String
        var mark: String
        var made: String
    }

    /// The campaign whose plans are shown; `nil` for all campaigns.
    var campaign: String?
    var rows: [Row]
    var isEmpty: Bool
    /// The address of the older plans.
    var older: String?
}

extension PlanList.Row {
    init(_ plan: SavedPlan, _ step: KeepPlans.Step) {
        address = plan.address
        name = "Plan \(plan.id)"
        campaign = plan.file
        excerpt = plan.definition.excerpt(in: []) ?? "a silent push"
        reach = (try? plan.result.expected.devices.grouped) ?? ""
        (state, mark) = (step.summary, PlanPage.mark(step))
        made = "\(PersonName.shown(plan.madeBy)), \(plan.madeAt.iso8601.shownTime)"
    }
}

/// One plan: what would be sent to whom, and the next step.
struct PlanPage: Sendable {
    struct Link: Sendable {
        var address: String
        var label: String
    }

    var address: String
    var heading: String
    var campaign: Link
    /// The campaign's form with the values of this plan.
    var change: Link?
    var excerpt: String?
    var made: String
    var state: String
    var mark: String
    /// What to do next, in a sentence.
    var next: String
    /// The approval or the run that the next step leads to.
    var link: Link?
    /// What the person who asked for approval told the approvers.
    var note: String?
    /// The signatures so far, with the comments of the signers.
    var signatures: [ApprovalPage.Signature] = []
    var plan: PlanView
    var values: [PlanView.Fact]
    var phones: [PhoneScreen]
    /// The reason why there are no screens.
    var phonesReason: String?
    /// The button that asks for approval.
    var mayAsk = false
    /// Whether to show the button that gives the start the plan's values.
    var mayGive = false
    /// The form that sends the plan.
    var start: PlanView.Start?
    var mayTest: Bool
    var device = ""
    /// The devices that the configuration names.
    var named: [CampaignPage.Option] = []
    var hasNamed = false
    var variants: [String]
    var hasVariants: Bool
    var test: TestState?
    /// The reasons why the request was refused, one per line.
    var problem: [String] = []
}

extension PlanPage {
    init(_ plan: SavedPlan, _ step: KeepPlans.Step, for caller: Caller) throws {
        let definition = plan.definition
        let result = try plan.result
        address = plan.address
        heading = "Plan \(plan.id)"
        campaign = Link(address: CampaignPage.address(plan.file), label: plan.file)
        // A plan without all values shows the names of the missing ones in their place. These are no values.
        let missing = Set(result.unsetVariables)
        let input = CampaignPage.Input(variables: definition.variables.filter { !missing.contains($0.key) })
        if caller.role.may(.plan) {
            let form =
                plan.isScheduled && !definition.variables.isEmpty
                ? NextStartPage.address(plan.file, plan.occurrence) : CampaignPage.address(plan.file, input) + "#try"
            change = Link(address: form, label: "Change the values")
        }
        excerpt = definition.excerpt(in: [])
        made = "\(PersonName.shown(plan.madeBy)), \(plan.madeAt.iso8601.shownTimeAndZone)"
        (state, mark) = (step.summary, Self.mark(step))
        self.plan = PlanView(result, isNow: !plan.isScheduled)
        values = definition.variables.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value) }
        phones = try PhoneScreen.all(of: definition)
        variants = definition.campaign.variants.map(\.name)
        hasVariants = !variants.isEmpty
        mayTest = caller.role.may(.testSend)
        next = Self.next(step, plan, result, caller)
        link = Self.link(step)
        switch step {
        case .awaitingApproval(let asked), .approved(let asked):
            note = asked.note
            signatures = asked.signatures.map(ApprovalPage.Signature.init)
        default: break
        }
        switch step {
        case .needsApproval, .rejected, .scheduled(.some): mayAsk = caller.role.may(.ask)
        case .approved where plan.isScheduled: break
        case .ready where caller.role.may(.run), .approved where caller.role.may(.run):
            start = .init(occurrence: plan.occurrence, guards: Self.guards(result))
        default: break
        }
        if let start, !start.guards.isEmpty {
            (state, mark) = ("needs your decision", "paused")
            next = "It is refused unless you tick the box below, which is recorded."
        }
    }

    /// Sets the device of the form for tests.
    ///
    /// - Parameter names: the devices that the configuration names.
    mutating func choose(_ device: String, among names: [String]) {
        named = names.map { .init(name: $0, isChosen: $0 == device) }
        hasNamed = !named.isEmpty
        self.device = names.contains(device) ? "" : device
    }

    /// Says that the schedule does not send the values of the plan, and offers to give them to the start.
    mutating func offerValues(of plan: SavedPlan, to caller: Caller) {
        mayGive = caller.role.may(.run)
        mayAsk = false
        next =
            "The start \(plan.occurrence.replacing("T", with: " ")) does not have these values yet. "
            + (mayGive ? "Give it these values." : "A sender can give it these values on this page.")
    }

    static func mark(_ step: KeepPlans.Step) -> String {
        switch step {
        case .approved(let asked): asked.isAboutToLapse ? "paused" : "finished"
        case .ready, .sent: "finished"
        case .incomplete, .rejected, .refused, .outdated: "failed"
        case .needsApproval, .awaitingApproval, .scheduled: "paused"
        }
    }

    private static func next(
        _ step: KeepPlans.Step, _ plan: SavedPlan, _ result: PlanResult, _ caller: Caller
    ) -> String {
        switch step {
        case .incomplete(let names): "Give \(names.joined(separator: ", ")) a value, and plan again."
        case .scheduled(let rule):
            scheduled(plan, result, rule)
                + " To send it immediately, choose “as started now” on the campaign’s page, and plan again."
        case .approved(let asked) where plan.isScheduled: asked.nextStep?.withShownTimes ?? ""
        case .ready where !caller.role.may(.run):
            "\(caller.name) is \(caller.role.rawValue): only senders can send."
        case .approved(let asked) where !caller.role.may(.run):
            "\(asked.nextStep?.withShownTimes ?? "") \(caller.name) is \(caller.role.rawValue)."
        case .ready: "Check it, test it on a device, and send it."
        case .outdated:
            "The campaign's files have changed since this plan was made. Plan it again."
                + (caller.role.may(.testSend) ? " A test sends the texts of this plan, as shown below." : "")
        case .sent(let run): "\(run.occurrence) is \(run.state.rawValue)."
        case .refused, .needsApproval, .awaitingApproval, .approved, .rejected:
            Self.next(step, "Change the values") ?? ""
        }
    }

    /// Returns the next step of an approval; `nil` if the step is none of an approval.
    ///
    /// - Parameter change: the change that may help after a rejection.
    static func next(_ step: KeepPlans.Step, _ change: String) -> String? {
        switch step {
        case .refused(let why): "\(why.prefix(1).uppercased())\(why.dropFirst())."
        case .needsApproval(let rule): "Before it can be sent: \(rule)."
        case .awaitingApproval(let asked):
            "Requested by \(PersonName.shown(asked.askedBy)), \(asked.askedAt.shownTime)."
        case .approved(let asked): asked.nextStep?.withShownTimes
        case .rejected(let asked):
            asked.signatures.first(where: \.isRejection).map { no in
                "Rejected by \(PersonName.shown(no.by))" + (no.reason.map { ": \($0)." } ?? ", without a reason.")
                    + " \(change), or request approval again."
            } ?? "Rejected."
        case .incomplete, .scheduled, .ready, .outdated, .sent: nil
        }
    }

    /// Says what the schedule does at the plan's time.
    private static func scheduled(_ plan: SavedPlan, _ result: PlanResult, _ rule: ApprovalRules.Rule?) -> String {
        guard result.unsetVariables.isEmpty else {
            return "It will then fail: no value for \(result.unsetVariables.joined(separator: ", "))."
        }
        guard let rule else { return "It then starts automatically." }
        let earliest = plan.definition.plannedAt - rule.within
        return "It then waits for \(rule.signatures), and requests \(rule.needs == 1 ? "it" : "them") automatically. "
            + "If signatures are requested and given earlier, it starts on schedule."
            + (earliest > plan.madeAt
                ? " A signature counts for \(WrittenDuration.text(rule.within)): one from before "
                    + "\(earliest.iso8601.shownTimeAndZone) lapses." : "")
    }

    static func link(_ step: KeepPlans.Step) -> Link? {
        switch step {
        case .awaitingApproval(let asked), .approved(let asked):
            Link(address: "/approvals/\(asked.digest)", label: "The approval")
        case .rejected(let asked): Link(address: "/approvals/\(asked.number)", label: "The approval")
        case .sent(let run): Link(address: "/runs/\(run.id)", label: "Run \(run.id)")
        case .incomplete, .scheduled, .ready, .refused, .needsApproval, .outdated: nil
        }
    }

    private static func guards(_ result: PlanResult) -> [PlanView.Guard] {
        let repeated = result.sentBefore.map { before in
            PlanView.Guard(name: GuardName.repeated.rawValue, label: "Send it again: \(before.summary.onPage)")
        }
        let refused = result.refusedGuards.map { refusal in
            PlanView.Guard(name: refusal.name, label: "Override \(refusal.name): \(refusal.message.onPage)")
        }
        return [repeated].compactMap(\.self) + refused
    }
}
