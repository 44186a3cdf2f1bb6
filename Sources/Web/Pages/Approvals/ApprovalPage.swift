import Campaigns
import Model

/// The list of plans that wait for signatures, and of those that are decided.
struct ApprovalList: Sendable {
    struct Row: Sendable {
        var address: String
        /// `new-podcast 2026-12-01T09:00`.
        var name: String
        /// The first words that a phone shows, so that two plans of a campaign can be told apart.
        var excerpt: String?
        /// What the asker tells the approvers.
        var remark: String?
        var state: String
        var colour: String
        var reach: String
        /// `4 devices`.
        var devices: String
        var asked: String
        /// The hash as it is shown, with the plan's reach.
        var hash: String
        /// Whether the request is still open.
        var isOpen: Bool
        /// What became of a request that is decided, in words.
        var outcome: String
        var run: Int64?
        /// The address that requests approval again. `nil` if the plan was not rejected, if it has a newer request, or
        /// if the visitor may not request it.
        var askAddress: String?
    }

    /// A stage of a run that waits until an approver starts it.
    struct Stage: Sendable {
        var address: String
        /// The run's campaign and occurrence.
        var name: String
        var stage: String
        var devices: String
        var reason: PageHTML

        init(_ waiting: WaitingStageResult) {
            address = "/runs/\(waiting.run)"
            name = "\(waiting.campaign) \(waiting.occurrence)"
            stage = "\(waiting.stage). \(waiting.members)"
            devices = waiting.devices.grouped
            reason = PageHTML(message: waiting.reason)
        }
    }

    /// The stages that wait for approval, of the oldest run first.
    var stages: [Stage]
    var hasStages: Bool
    var open: [Row]
    var decided: [Row]
    var hasOpen: Bool
    var hasDecided: Bool
    var problem: String?

    init(open: [Row], decided: [Row], stages: [Stage] = [], problem: String? = nil) {
        (self.open, self.decided, self.problem) = (open, decided, problem)
        (self.stages, hasStages) = (stages, !stages.isEmpty)
        (hasOpen, hasDecided) = (!open.isEmpty, !decided.isEmpty)
    }
}

/// One plan that waits for signatures or is decided: what a phone shows, what has changed, and the buttons.
struct ApprovalPage: Sendable {
    struct Signature: Sendable {
        var summary: String
        /// The reason why the signature does not count.
        var fault: String?
    }

    struct Fact: Sendable {
        var name: String
        var now: String
        var before: String
        var differs: Bool
        /// The expressions of audiences, which the sentences say in plain English.
        var code: String?
        var codeBefore: String?
    }

    /// What phones showed when the corrected run was sent.
    struct Before: Sendable {
        var run: Int64
        var phones: [PhoneScreen]
        var phonesReason: String?
    }

    var plan: ApprovalList.Row
    var note: String?
    /// The environments in words. `nil` if the plan reaches no device, or is decided.
    var sentTo: String?
    var isProduction: Bool
    var authors: String
    var signatures: [Signature]
    /// What happens next, or what became of the plan, in a sentence.
    var next: String
    /// The page from which the plan is sent. `nil` if there is none, or if the visitor may not open it.
    var source: PlanPage.Link?
    /// The run that the plan corrects.
    var corrects: Int64?
    var sinceRun: Int64?
    /// What would refuse the run now.
    var refusals: [String]
    var sentBefore: String?
    var lint: [String]
    var phones: [PhoneScreen]
    /// The reason why there are no screens.
    var phonesReason: String?
    var before: Before?
    /// The run that has removed the notification from the screens since. A correction shows it again.
    var removedBy: Int64?
    var facts: [Fact]
    var payloads: [Fact]
    var hasPayloads: Bool
    var maySign = false
    var mayReject = false
    /// Whether the plan has its signatures, so that a rejection takes them back.
    var isApproved: Bool
    var mayWithdraw: Bool
    var problem: String?
}

extension ApprovalPage {
    init(_ detail: ApprovePlans.Detail, _ source: PlanPage.Link?, for caller: Caller) throws {
        let (result, approval) = (detail.result, detail.result.approval)
        plan = ApprovalList.Row(approval)
        note = approval.note
        sentTo = result.sentTo.isEmpty ? nil : result.sentTo
        isProduction = result.sentTo.contains(PushEnvironment.production.warningName)
        authors = approval.authors.map(PersonName.shown).joined(separator: ", ")
        signatures = approval.signatures.map(Signature.init)
        self.source = source
        (corrects, sinceRun) = (approval.corrects, approval.isOpen ? result.sinceRun : nil)
        (refusals, sentBefore, lint) = (result.refusals ?? [], result.sentBefore, result.lint ?? [])
        do {
            phones = try PhoneScreen.all(of: detail.definition)
        } catch {
            phones = []
            phonesReason = Problem(error, for: caller).detail
        }
        removedBy = result.removedBy
        // A phone shows nothing of a notification that was removed.
        if let run = approval.corrects, let corrected = detail.corrected, removedBy == nil {
            before = Before(run: run, phones: (try? PhoneScreen.all(of: corrected)) ?? [])
        }
        let facts = result.facts.map { fact in
            (
                isPayload: fact.name.hasPrefix(ApprovalDetailResult.payloadPrefix),
                fact: Fact(name: fact.name, now: fact.now ?? "none", before: fact.before ?? "", differs: fact.differs)
            )
        }
        self.facts = facts.filter { !$0.isPayload }.map { $0.fact.withSentence }
        payloads = facts.filter(\.isPayload).map(\.fact)
        hasPayloads = !payloads.isEmpty
        isApproved = approval.isOpen && approval.missing == 0
        mayWithdraw = detail.mayWithdraw && caller.role.may(.ask)
        next = ""
        if approval.isOpen, caller.role.may(.approve) {
            maySign = !isApproved && approval.isOutdated != true && detail.obstacle == nil
            mayReject = true
        }
        next = Self.next(detail, caller)
    }

    private static func next(_ detail: ApprovePlans.Detail, _ caller: Caller) -> String {
        let approval = detail.result.approval
        guard approval.isOpen else { return approval.outcome }
        if let next = approval.nextStep { return next.withShownTimes }
        guard caller.role.may(.approve) else { return "It waits for approvers." }
        switch detail.obstacle {
        case .isAuthor:
            return
                "You created this plan, requested its approval, or own or edited one of its files: another person must "
                + "sign it."
        case .unknownAccount(let account):
            return
                "\(account) has no entry in people in the configuration, and cannot sign. Ask the operator to add it."
        case .hasSigned: return "You have signed it; another person must also sign it."
        case nil: return "Check the texts, the devices and the differences. Then approve or reject it."
        }
    }
}

extension ApprovalResult {
    /// What became of a request that is decided, in a sentence.
    fileprivate var outcome: String {
        switch ApprovalRequest.State(rawValue: state) {
        case .used: "Sent" + (run.map { " as run \($0)." } ?? ".")
        case .rejected:
            signatures.first(where: \.isRejection).map { no in
                "Rejected by \(PersonName.shown(no.by)), \(no.signedAt.shownTime)"
                    + (no.reason.map { ": \($0)" } ?? ".")
            } ?? "Rejected."
        case .withdrawn: "Withdrawn by \(PersonName.shown(askedBy)), who had requested it."
        case .replaced: "Replaced: the plan of this occurrence has changed; see the new request."
        case .lapsed: "Lapsed: it was not sent in time."
        case .open, nil: ""
        }
    }
}

extension ApprovalList.Row {
    init(_ approval: ApprovalResult, mayAsk: Bool = false) {
        isOpen = approval.isOpen
        address = "/approvals/\(isOpen ? approval.digest : "\(approval.number)")"
        name = [approval.campaign, approval.occurrence].compactMap(\.self).joined(separator: " ")
        excerpt = approval.excerpt
        remark = approval.note
        hash = approval.plan
        state = isOpen ? approval.stateSummary : approval.state
        colour =
            switch approval.standing {
            case .decided: ""
            case .startsOnSchedule, .ready: "accepted"
            case .awaitingSignatures, .lapsesBeforeStart: "paused"
            case .outdated: "failed"
            }
        if approval.state == ApprovalRequest.State.rejected.rawValue { colour = "rejected" }
        reach = approval.reach.grouped
        devices = approval.reach.counted("device")
        asked = "\(PersonName.shown(approval.askedBy)), \(approval.askedAt.shownTime)"
        outcome = approval.run == nil ? approval.outcome : ""
        run = approval.run
        // A correction is asked for again on its own page.
        if mayAsk, approval.corrects == nil, approval.state == ApprovalRequest.State.rejected.rawValue {
            askAddress = "/approvals/\(approval.digest)/ask"
        }
    }
}

extension ApprovalPage.Signature {
    init(_ signature: ApprovalResult.Signature) {
        summary =
            "\(signature.isRejection ? "Rejected" : "Signed") by \(PersonName.shown(signature.by)), \(signature.signedAt.shownTime)"
            + (signature.isRejection ? "" : ", good until \(signature.lapsesAt.shownTime)")
            + (signature.reason.map { ": \($0)" } ?? "")
        fault = signature.fault
    }
}

extension ApprovalPage.Fact {
    /// The fact with an audience as a sentence above its expression, because the expression is what is signed.
    fileprivate var withSentence: Self {
        guard name == ApprovalDetailResult.audience else { return self }
        var fact = self
        if let sentence = AudienceSummary(source: now, sql: nil).sentence { (fact.now, fact.code) = (sentence, now) }
        if !before.isEmpty, let sentence = AudienceSummary(source: before, sql: nil).sentence {
            (fact.before, fact.codeBefore) = (sentence, before)
        }
        return fact
    }
}
