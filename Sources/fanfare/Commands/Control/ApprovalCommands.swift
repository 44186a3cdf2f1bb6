import ArgumentParser
import Campaigns
import Model
import Sending
import Store

struct ApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve", abstract: "Sign a plan, or start the stage that a paused run waits for.",
        discussion: """
            A plan above a reach set in the configuration (`approvals`) is sent only when the required number of people \
            have signed it, none of them its author; `fanfare approvals` lists waiting plans. A signature is for one \
            plan, and lapses when the plan changes, its reach drifts, or a day has passed. A signed occurrence of a \
            schedule starts automatically; for other runs, run `fanfare run` again.

            A stage with `needs: approval` waits until it is approved; `fanfare resume` does not approve it. If the \
            comparison of variants shows no winner, the run waits until --variant names the variant for the rest. The \
            daemon, or `fanfare run` for the same occurrence, continues the run.
            """)

    @OptionGroup var settings: Settings
    @Argument(
        help:
            "A plan's hash as `fanfare plan` prints it, or a run: its number, a campaign's name, or campaign/occurrence.",
        completion: .custom(CampaignNames.completions))
    var plan: String
    @Option(help: "The number of the stage to approve, as `fanfare status RUN` shows it; for a run.") var stage: Int?
    @Option(help: "The variant to send to the rest, if the run waits for this choice; for a run.") var variant: String?
    @Option(help: "A comment, kept with the signature and in the audit log; for a plan.") var reason: String?
    @Option(
        help: "A file with another person's signature, created with a key in `people`; see `fanfare approvals`.",
        completion: .file())
    var signature: String?
    @Flag(help: "Print the plan or run as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        guard ApprovePlans.isPlan(plan) else {
            let changed = try await session.useCases.control.approve(
                session.run(plan), stage: stage, variant: variant, by: session.actor)
            try await RunStatus.show(changed, session.runs, json: json)
            return try await session.noteNoSender(changed.run)
        }
        let detail = try await session.useCases.approving.detail(plan, by: session.actor, now: session.now).result
        if let removal = ApprovalText.removal(of: detail) { Console.note("WARNING: \(removal)") }
        let signed =
            if let signature {
                try await session.useCases.approving.sign(
                    plan, signature: signature, by: session.actor, now: session.now)
            } else {
                try await session.useCases.approving.sign(plan, reason: reason, by: session.actor, now: session.now)
            }
        Console.print(json ? try ResultJSON.text(signed) : ApprovalText.text(signed))
    }
}

struct RejectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reject", abstract: "Reject a plan that waits for approval.",
        discussion: """
            Its signatures no longer count, and a due occurrence of a schedule is not sent. To get approval again, \
            change the plan, or request the same plan again, with `fanfare plan --for-approval`.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The plan's hash, as `fanfare plan` or `fanfare approvals` prints it.") var plan: String
    @Option(help: "The reason, for the audit log.") var reason: String?
    @Flag(help: "Print the plan as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let signed = try await session.useCases.approving.sign(
            plan, isRejection: true, reason: reason, by: session.actor, now: session.now)
        Console.print(json ? try ResultJSON.text(signed) : ApprovalText.text(signed))
    }
}

struct WithdrawCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw", abstract: "Withdraw your own request for the approval of a plan.",
        discussion: "Its signatures no longer count. The same plan can be requested again."
    )

    @OptionGroup var settings: Settings
    @Argument(help: "The plan's hash, as `fanfare plan` or `fanfare approvals` prints it.") var plan: String
    @Flag(help: "Print the plan as JSON.") var json = false

    func run() async throws {
        let session = try await settings.session()
        let ended = try await session.useCases.approving.withdraw(plan, by: session.actor, now: session.now)
        Console.print(json ? try ResultJSON.text(ended) : ApprovalText.text(ended))
    }
}

struct ApprovalsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approvals",
        abstract:
            "List the plans that wait for signatures, who has signed them, and the stages that wait for a person.",
        discussion: """
            With PLAN, the command shows the statement to sign, compared with the campaign's last run, and what would \
            refuse the run now. PLAN is a hash or the number of a request; a number also finds decided plans.

            An approver without an account here signs the plan's statement with a private key whose public key is in \
            `people`:
              fanfare approvals PLAN --statement > plan.txt
              openssl pkeyutl -sign -inkey anna.pem -rawin -in plan.txt -out plan.sig
              fanfare approve PLAN --signature plan.sig
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "The hash of one plan, or the number of its request.") var plan: String?
    @Flag(help: "Print only the statement to sign with a key, byte for byte.") var statement = false
    @Flag(help: "Also list used, rejected, withdrawn, replaced and lapsed plans.") var all = false
    @Flag(help: "Print as JSON.") var json = false

    func validate() throws {
        if statement, plan == nil { throw ValidationError("--statement prints one plan: give its hash") }
    }

    func run() async throws {
        let session = try await settings.session(.reading)
        if let plan, statement {
            return Console.print(String(try await session.useCases.approving.statement(plan).dropLast()))
        }
        if let plan {
            let detail = try await session.useCases.approving.detail(plan, by: session.actor, now: session.now)
                .result
            return Console.print(json ? try ResultJSON.text(detail) : ApprovalText.text(detail))
        }
        var list = try await session.useCases.approving.list(includingPast: all, now: session.now)
        let stages = try await session.runs.waitingStages()
        list.stages = stages.isEmpty ? nil : stages
        if json { return Console.print(try ResultJSON.text(list)) }
        let texts = list.approvals.map(ApprovalText.text) + stages.map(ApprovalText.text)
        Console.print(texts.isEmpty ? "no plan or stage waits for approval" : texts.joined(separator: "\n\n"))
    }
}

extension Session {
    /// Prints a prominent warning if the run is sent without its required signatures.
    func warnOfEmergencyOverride(_ run: Run) async throws {
        guard let broken = try await runs.emergencyOverride(of: run) else { return }
        Console.note("WARNING: RUN \(run.id) IS SENT WITHOUT THE SIGNATURES THAT IT NEEDS: \(broken.summary)")
    }

    /// Prints how to continue a run whose stage was approved, if no daemon is running.
    fileprivate func noteNoSender(_ run: Run) async throws {
        guard try await runs.daemon()?.takesUpRuns != true else { return }
        Console.note(
            "no process sends it: run `fanfare run \(run.campaign) --occurrence \(run.occurrence)`, or start the daemon"
        )
    }

    /// Prints one line for each stop in force.
    func noteStops() async {
        for stop in await useCases.stopping.inForce() {
            Console.note("WARNING: \(stop.order.refusal)")
        }
    }

    /// Prints one line for each plan that waits for approval.
    func noteWaitingPlans() async throws {
        guard configuration.approvals != nil else { return }
        for approval in try await useCases.approving.list(includingPast: false, now: now).approvals {
            Console.note(ApprovalText.head(approval) + "; see `fanfare approvals`")
        }
    }

    /// Requests approval of a plan, and prints the signatures that it needs.
    func ask(for plan: Plan, occurrence: String?, note: String?, files: [String: String]) async throws {
        let asked = try await useCases.approving.ask(
            plan.definition, occurrence: occurrence ?? "", reach: plan.reach.total, note: note, by: actor, now: now,
            files: files)
        Console.note(
            asked.map { "waits for approval:\n" + ApprovalText.text($0) } ?? "the plan needs no approval")
    }
}

/// A plan that waits for approval, as text.
enum ApprovalText {
    static func text(_ approval: ApprovalResult) -> String {
        var lines = [
            head(approval),
            "  plan \(approval.plan), digest \(approval.digest.prefix(12)), \(approval.reach.counted("device"))",
            "  request \(approval.number) by \(approval.askedBy) at \(approval.askedAt); written by "
                + "\(approval.authors.joined(separator: ", "))",
        ]
        if let note = approval.note { lines.append("  note: \(note)") }
        lines += approval.signatures.map { signature in
            let verb = signature.isRejection ? "rejected" : "signed"
            let reason = signature.reason.map { ": \($0)" } ?? ""
            let signer =
                signature.by.hasPrefix(signature.person) ? signature.by : "\(signature.person), as \(signature.by)"
            let until = signature.isRejection ? "" : ", good until \(signature.lapsesAt)"
            return "  \(verb) by \(signer) at \(signature.signedAt)\(until)\(reason)"
                + (signature.fault.map { "; does not count: \($0)" } ?? "")
        }
        if let next = approval.nextStep { lines.append("  \(next)") }
        return lines.joined(separator: "\n")
    }

    static func text(_ detail: ApprovalDetailResult) -> String {
        let since =
            detail.sinceRun.map { "compared with run \($0), the last one:" } ?? "the campaign has never been sent:"
        let facts = detail.facts.map { fact in
            "  \(fact.name): \(fact.now ?? "none any more")"
                + (fact.differs ? "\n    then: \(fact.before ?? "there was none")" : "")
        }
        guard detail.approval.isOpen else { return ([text(detail.approval)] + facts).joined(separator: "\n") }
        let sentTo =
            detail.sentTo.isEmpty ? "  would reach no device now" : "  \(Console.warned(detail.sentTo, on: .results))"
        let findings =
            (detail.refusals ?? []).map { "  a guard would refuse the run: \($0)" }
            + [removal(of: detail)].compactMap { $0.map { "  WARNING: \($0)" } }
            + [detail.sentBefore].compactMap { $0.map { "  sent before: \($0)" } }
            + (detail.lint ?? []).map { "  look again: \($0)" }
        return ([text(detail.approval), sentTo] + findings + [since] + facts).joined(separator: "\n")
    }

    /// Says that the notification was removed that a correction would show again; `nil` if it was not.
    static func removal(of detail: ApprovalDetailResult) -> String? {
        detail.removedBy.map { "run \($0) removed the notification from the screens; a correction shows it again" }
    }

    static func text(_ stage: WaitingStageResult) -> String {
        """
        \(stage.campaign)/\(stage.occurrence): stage \(stage.stage) of run \(stage.run) waits for approval
          \(stage.members), \(stage.devices.counted("device")): \(stage.reason)
          \(step(stage))
        """
    }

    /// The command that starts the stage. If the run waits for the choice of a variant, the command names it.
    private static func step(_ stage: WaitingStageResult) -> String {
        guard let choices = stage.choices else {
            return "`fanfare approve \(stage.run) --stage \(stage.stage)` starts it"
        }
        return "`fanfare approve \(stage.run) --variant NAME` sends \(choices.joined(separator: " or ")) to the rest"
    }

    static func head(_ approval: ApprovalResult) -> String {
        approval.campaign + (approval.occurrence.map { "/\($0)" } ?? "") + ": \(approval.stateSummary)"
    }
}
