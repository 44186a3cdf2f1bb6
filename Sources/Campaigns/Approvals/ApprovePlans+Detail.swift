import CampaignFiles
package import Model
import Store

/// One request with everything that an approver checks.
extension ApprovePlans {
    /// A plan in any state, compared with the campaign's last run.
    package struct Detail: Sendable {
        package var result: ApprovalDetailResult
        package var definition: RunDefinition
        /// The definition of the run that the plan corrects; `nil` for a plan of a campaign.
        package var corrected: RunDefinition?
        /// Why the visitor's signature would not be accepted; `nil` if it would.
        package var obstacle: Obstacle?
        /// Whether the visitor made the request, and may withdraw it.
        package var mayWithdraw: Bool
    }

    /// The reason why a person's signature would not be accepted.
    package enum Obstacle: Hashable, Sendable {
        case isAuthor
        /// `people` lists other accounts, but not this one.
        case unknownAccount(String)
        case hasSigned
    }

    /// Returns a plan compared with the campaign's last run. Counts the devices of a plan that waits.
    ///
    /// - Parameters:
    ///   - plan: as `fanfare plan` prints it, the first digits of its digest, or the number of a request. A plan that
    ///     no longer waits is found by its complete digest or by its number.
    ///   - actor: the visitor.
    package func detail(_ plan: String, by actor: Actor, now: Timestamp) async throws -> Detail {
        let record = try await findPast(plan)
        let request = record.request
        let definition = request.definition
        let isOpen = request.state == .open
        // What the segments hold and who is reached now says nothing about a plan that is over.
        let previous = isOpen || definition.correction != nil ? try await previous(definition) : nil
        let correction =
            isOpen ? rules?.correctionPath(definition).flatMap { TemplateFile.load(path: $0).0 } : nil
        let result = ApprovalDetailResult(
            try await compared(result(record, now: now), request, correction: correction), definition,
            segments: isOpen ? try await store.segmentContents(of: definition.campaign) : SegmentContents(),
            correction: correction?.template, previous: previous,
            findings: isOpen ? try await findings(request, previous, now: now) : Findings())
        let people = try await people()
        let person = people.person(actor.identity)
        return Detail(
            result: result, definition: definition,
            corrected: definition.correction == nil ? nil : previous?.run.definition,
            obstacle: isOpen ? obstacle(to: actor, record, result.approval, people) : nil,
            mayWithdraw: isOpen && people.person(request.askedBy) == person)
    }

    /// Returns a request in any state.
    func findPast(_ plan: String) async throws -> ApprovalRecord {
        if plan.utf8.count < Self.digestDigitsMin, let number = Int64(plan) {
            guard let found = try await store.approval(.number(number)) else {
                throw Failure(.notFound, "no approval \(number)")
            }
            return found
        }
        do {
            return try await find(plan)
        } catch let failure as Failure {
            guard let found = try await store.approval(.digest(plan.lowercased())) else { throw failure }
            return found
        }
    }

    /// Returns why the actor's signature would not count; `nil` if it would.
    func obstacle(
        to actor: Actor, _ record: ApprovalRecord, _ result: ApprovalResult, _ people: People
    ) -> Obstacle? {
        let person = people.person(actor.identity)
        if isAuthor(person, of: record.request, people) { return .isAuthor }
        guard people.knows(actor.identity) else { return .unknownAccount(actor.identity) }
        return result.signatures.contains { $0.person == person && $0.fault == nil && !$0.isRejection }
            ? .hasSigned : nil
    }

    /// Returns the run that a plan is compared with: the corrected run, or the campaign's last one.
    private func previous(_ definition: RunDefinition) async throws -> PreviousRun? {
        guard let correction = definition.correction else {
            return try await PreviousRun.find(campaign: definition.campaign.name, in: store)
        }
        guard let run = try await store.run(correction.run) else { return nil }
        return PreviousRun(run: run, reach: try await store.reached(by: run.id).all)
    }

    /// What a start of the plan would find now.
    struct Findings {
        var sentTo = ""
        var refusals: [GuardRefusal] = []
        var earlier: String?
        var lint: [String] = []
        /// The run that has removed the notification that a correction would show again.
        var removedBy: Int64?
    }

    private func findings(
        _ request: ApprovalRequest, _ previous: PreviousRun?, now: Timestamp
    ) async throws -> Findings {
        let definition = request.definition
        var findings = Findings(
            refusals: GuardRefusal.check(definition), lint: definition.lintOfValues().map(\.description))
        if let correction = definition.correction {
            findings.sentTo = try await store.reached(by: correction.run).environmentSummary
            if correction.kind == .replace, let run = previous?.run {
                findings.removedBy = CorrectRun.removal(by: try await CorrectRun.corrections(of: run, in: store))?.id
            }
            return findings
        }
        let waves = RecipientWaves(definition, startedAt: max(now, definition.plannedAt))
        let reach = try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: now)
        findings.sentTo = reach.environmentSummary
        findings.refusals += GuardRefusal.check(definition.campaign, reach, previous: previous)
        if request.occurrence.isEmpty {
            findings.earlier = try await EarlierSend.find(definition, in: store, now: now)?.facts(now: now)
        }
        return findings
    }
}
