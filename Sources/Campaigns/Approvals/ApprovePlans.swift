import CampaignFiles
import Foundation
package import Model
package import Store

/// Requests approval of plans, signs and rejects them, and determines the approval that a new run needs.
package struct ApprovePlans: Sendable {
    static let openMax = 1000
    static let pastMax = 200
    static let digestDigitsMin = 12

    package typealias PlanStore = DeviceRegistry & ApprovalLog & RunLog & AuditLog & OutcomeReader
        & OccurrenceValueLog

    let store: any PlanStore
    let rules: ApprovalRules?

    /// - Parameter rules: `nil` if no run needs approval.
    package init(store: any PlanStore, rules: ApprovalRules?) {
        self.store = store
        self.rules = rules
    }

    /// Returns the approval that a run needs; `nil` if it needs none. Throws ``Unapproved`` if no number of
    /// signatures could permit the run, or if the actor may not override the rules.
    ///
    /// - Parameters:
    ///   - occurrence: the occurrence of the campaign's schedule; empty for a run that a person starts.
    ///   - files: the hashes of the files that the definition was read from, by path.
    ///   - emergencyOverride: the reason to start in an emergency without all signatures; `nil` for a normal start.
    package func demand(
        _ definition: RunDefinition, occurrence: String, reach: Int, by actor: Actor, now: Timestamp,
        files: [String: String] = [:], emergencyOverride: String? = nil
    ) async throws -> ApprovalDemand? {
        guard let rules else { return nil }
        let rule = rules.rule(forReach: reach)
        let digest = try await digest(definition, occurrence, files)
        let plan = try PlanToken(definition, reach: reach, digest: digest.text).description
        func refuse(_ cause: Unapproved.Cause) -> Unapproved {
            Unapproved(campaign: definition.campaign.name, plan: plan, reach: reach, rule: rule, cause: cause)
        }
        if let ceiling = rules.ceiling, reach > ceiling { throw refuse(.ceiling(ceiling)) }
        guard let rule else {
            try await requireNoRejection(definition, occurrence, digest.text, refuse)
            return nil
        }
        let people = try await rules.people(in: store)
        let person = people.person(actor.identity)
        if emergencyOverride != nil, !rules.mayOverride(person) { throw refuse(.mayNotOverride(person: person)) }
        // A person who made the plan, or ever requested it, may not sign it, even if another person requests it now.
        let authors = try await ContributorLookup(store: store, rules: rules).authors(of: definition, files: files)
            .union(
                store.contributors(campaign: definition.campaign.name, occurrence: occurrence, digest: digest.text))
        let request = ApprovalRequest(
            definition: definition, occurrence: occurrence, plan: plan,
            digest: digest.text, reach: reach, needs: rule.needs,
            authors: authors.union([actor.identity]).sorted(), askedBy: actor.identity, askedAt: now)
        return ApprovalDemand(
            policy: ApprovalPolicy(rule: rule, reach: reach, authors: Set(authors.map(people.person))),
            people: people, request: request, emergencyOverride: emergencyOverride, segments: digest.segments)
    }

    /// Throws if a person rejected the plan, even if the plan now reaches fewer devices or no longer needs approval.
    private func requireNoRejection(
        _ definition: RunDefinition, _ occurrence: String, _ digest: String,
        _ refuse: (Unapproved.Cause) -> Unapproved
    ) async throws {
        let latest = try await store.approval(
            campaign: definition.campaign.name, occurrence: occurrence, digest: digest)
        guard let latest, latest.request.state == .rejected,
            let no = latest.signatures.first(where: \.isRejection)
        else { return }
        throw refuse(.rejected(by: no.name, reason: no.reason))
    }

    /// Requests approval of a plan, even a rejected one. Returns `nil` if its run needs no approval. For an
    /// occurrence, replaces an open request without a valid signature once a key's signature would have lapsed.
    ///
    /// - Parameter note: what the asker tells the approvers; `nil` if nothing.
    package func ask(
        _ definition: RunDefinition, occurrence: String, reach: Int, note: String? = nil, by actor: Actor,
        now: Timestamp, files: [String: String] = [:], authors: Set<String> = []
    ) async throws -> ApprovalResult? {
        let demand = try await demand(
            definition, occurrence: occurrence, reach: reach, by: actor, now: now, files: files)
        guard var demand else { return nil }
        demand.request.note = try RecordedReason.given(note)
        demand.request.authors = Set(demand.request.authors).union(authors).sorted()
        let request = demand.request
        let known = try await store.approval(
            campaign: request.campaign, occurrence: occurrence, digest: request.digest)
        // Requests for runs that a person starts may coexist, and lapse automatically.
        if !occurrence.isEmpty, let known, known.request.state == .open,
            try await confirmed(now) - known.request.askedAt > demand.policy.rule.within,
            try await result(known, now: now).missing == known.request.needs
        {
            try await store.lapseApprovals(campaign: request.campaign, occurrence: occurrence, now: now)
        }
        return try await result(record(demand, isAnew: true, by: actor, now: now), now: now)
    }

    /// Returns the names of the people who signed another open plan of the same campaign and occurrence, in order.
    func signers(besides request: ApprovalRequest) async throws -> [String] {
        let others = try await store.approvals(in: [.open], limit: Self.openMax).filter {
            $0.request.campaign == request.campaign && $0.request.occurrence == request.occurrence
                && $0.request.digest != request.digest
        }
        return Set(others.flatMap(\.signatures).filter { !$0.isRejection }.map(\.name)).sorted()
    }

    /// Records the approval request of a plan, and lapses the requests that are no longer needed. Throws if the note
    /// was not recorded, because another person has requested approval of the plan already.
    func record(
        _ demand: ApprovalDemand, isAnew: Bool, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord {
        try await lapse(now: now)
        let record = try await store.requestApproval(demand.request, isAnew: isAnew, by: actor)
        guard let note = demand.request.note, record.request.note != note else { return record }
        throw Failure(
            .refused,
            "\(demand.people.person(record.request.askedBy)) has already requested approval of \(record.request.summary), "
                + "and a note there would stand under that name; request approval without a note")
    }

    /// Lapses requests for runs that a person starts once their signatures could no longer count, and requests for
    /// occurrences that already have a run. A clock that was just set forward lapses no request.
    package func lapse(now: Timestamp) async throws {
        let longest = rules?.rules.map(\.within).max() ?? ApprovalRules.Rule(above: 0, needs: 1).within
        try await store.lapseApprovals(before: confirmed(now) - longest)
    }

    private func confirmed(_ now: Timestamp) async throws -> Timestamp {
        ConfirmedTime(now, after: try await store.clockSteps(since: now - ConfirmedTime.confirmedAfter * 2)).moment
    }

    /// Returns the plans, waiting ones first, compared with the files as they are now.
    ///
    /// - Parameters:
    ///   - includingPast: whether to include plans that can no longer be signed.
    ///   - isCompared: whether to compare them. Pages that show only who signed do without.
    package func list(
        includingPast: Bool, isCompared: Bool = true, now: Timestamp
    ) async throws -> ApprovalListResult {
        var records = try await store.approvals(in: [.open], limit: Self.openMax)
        if includingPast {
            let past = Set(ApprovalRequest.State.allCases).subtracting([.open])
            records += try await store.approvals(in: past, limit: Self.pastMax)
        }
        let people = try await people()
        let read = rules?.files.map(ReadCampaigns.init)
        var list = ApprovalListResult(approvals: records.map { result($0, people, now: now) })
        guard isCompared else { return list }
        for (index, record) in records.enumerated() {
            list.approvals[index] = try await compared(list.approvals[index], record.request, read)
        }
        return list
    }

    /// Returns the plan of a run; `nil` if no approval was requested for it.
    package func ofRun(_ run: Int64, now: Timestamp) async throws -> ApprovalResult? {
        guard let record = try await store.approval(.run(run)) else { return nil }
        return try await result(record, now: now)
    }

    /// Returns one plan that waits for approval.
    ///
    /// - Parameter plan: as `fanfare plan` prints it, or the first digits of its digest.
    package func waiting(_ plan: String, now: Timestamp) async throws -> ApprovalResult {
        try await result(find(plan), now: now)
    }

    /// - Parameters:
    ///   - plan: as `fanfare plan` prints it, or the first digits of its digest.
    ///   - shown: the plan token that the approver has seen, with its reach; `nil` if `plan` is that token.
    ///   - isRejection: whether to reject the plan, which closes it.
    package func sign(
        _ plan: String, shown: String? = nil, isRejection: Bool = false, reason: String?, by actor: Actor,
        now: Timestamp
    ) async throws -> ApprovalResult {
        var record = try await find(plan)
        if !isRejection {
            record = try await recounted(record, now: now)
            record = try await withContributors(record)
            try requireShown(shown ?? plan, record.request)
            try await requireUnchanged(record.request)
            let people = try await people()
            try requireOther(actor.identity, record.request, people)
            if rules != nil { try requireCounts(actor, record, people) }
        }
        let signature = ApprovalSignature(
            identity: actor.identity, name: actor.name, signedAt: now, reach: record.request.reach,
            isRejection: isRejection, reason: try RecordedReason.checked(reason), uid: actor.identityUID)
        return try await signed(record.request.id, signature, by: actor, now: now)
    }

    /// Returns the text that a person without an account signs; see ``sign(_:signature:by:now:)``.
    package func statement(_ plan: String) async throws -> String {
        SignedStatement(try await find(plan).request).text
    }

    /// Accepts a signature that was made elsewhere, by a key that `people` names. The signature counts as made when the
    /// plan was requested, so submitting it again does not extend it.
    ///
    /// - Parameter signature: the path of a file with 64 bytes, the Ed25519 signature of ``statement(_:)``.
    package func sign(
        _ plan: String, signature: String, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        let record = try await withContributors(try await find(plan))
        let people = try await people()
        let bytes: Data
        do {
            bytes = try RegularFile.read(signature, takesPipes: true)
        } catch {
            throw Failure(.notFound, "\(signature) \(error)")
        }
        guard let identity = SignedStatement(record.request).signer([UInt8](bytes), among: people) else {
            throw Failure(
                .refused,
                "\(signature) is not a signature of this plan by a key in `people`: it is for another plan, an "
                    + "earlier request or reach, or by another key; `fanfare approvals \(plan) --statement` prints the text"
            )
        }
        let person = people.person(identity)
        try requireOther(identity, record.request, people)
        try await requireUnchanged(record.request)
        if let rule = rules?.rule(forReach: record.request.reach), now - record.request.askedAt > rule.within {
            throw Failure(
                .refused,
                "\(record.request.summary), was requested at \(record.request.askedAt.iso8601), and a key's signature "
                    + "expired \(WrittenDuration.text(rule.within)) later; request it again with `fanfare plan "
                    + "\(record.request.campaign) --for-approval`, and sign the new plan")
        }
        let signed = ApprovalSignature(
            identity: identity, name: "\(person), by a key", signedAt: record.request.askedAt,
            reach: record.request.reach)
        return try await self.signed(record.request.id, signed, by: actor, now: now)
    }

    private func signed(
        _ id: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        let people = try await people()
        let record = try await store.sign(id, signature, by: actor, now: now) { record in
            self.result(record, people, now: now).missing == 0
        }
        return try await compared(result(record, people, now: now), record.request)
    }

    /// Returns whether an attempt to create the run makes sense: its signatures suffice for the current devices, it
    /// no longer needs any, or the files have changed since the request.
    ///
    /// - Parameter files: the hashes of the files that the definition was read from, by path.
    package func isReady(
        _ record: ApprovalRecord, _ definition: RunDefinition, files: [String: String], now: Timestamp
    ) async throws -> Bool {
        let request = record.request
        if try await digest(definition, request.occurrence, files).text != request.digest { return true }
        guard rules?.rule(forReach: request.reach) != nil else { return true }
        if try await result(record, now: now).missing == 0 { return true }
        guard record.signatures.contains(where: { $0.reach != request.reach }) else { return false }
        // A signature covers another reach. The audience may have that size again, so count it.
        var counted = record
        counted.request.reach = try await reach(of: definition, now: now)
        return try await result(counted, now: now).missing == 0
    }

    func reach(of definition: RunDefinition, now: Timestamp) async throws -> Int {
        if let correction = definition.correction { return try await store.reached(by: correction.run).stored }
        let waves = RecipientWaves(definition, startedAt: now)
        return try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: now).total
    }

    /// Returns the record. First stores its current reach, if that differs by more than the rule allows. Throws if the
    /// request was closed in the meantime.
    private func recounted(_ record: ApprovalRecord, now: Timestamp) async throws -> ApprovalRecord {
        var request = record.request
        guard let rules, let rule = rules.rule(forReach: request.reach) else { return record }
        let before = request.reach
        request.reach = try await reach(of: request.definition, now: now)
        guard Double((request.reach - before).magnitude) * 100 > rule.driftPercent * Double(before) else {
            return record
        }
        request.needs = rules.rule(forReach: request.reach)?.needs ?? request.needs
        request.plan = try PlanToken(request.definition, reach: request.reach, digest: request.digest).description
        // Its note may have changed since it was read.
        request.note = nil
        return try await store.recountApproval(request)
    }

    /// Returns whether a text names a plan rather than a run.
    package static func isPlan(_ text: String) -> Bool {
        PlanToken(text) != nil || PlanToken.isOutdated(text)
            || (text.utf8.count >= digestDigitsMin && text.allSatisfy(\.isHexDigit))
    }

    func digest(
        _ definition: RunDefinition, _ occurrence: String, _ files: [String: String]
    ) async throws -> PlanDigest {
        try await PlanDigest(of: definition, occurrence: occurrence, in: store, rules, files: files)
    }

    func find(_ plan: String) async throws -> ApprovalRecord {
        if PlanToken.isOutdated(plan) { throw PlanToken.fault(plan) }
        // Search by the digest alone, because an attacker could create another plan with the same short hashes.
        let text = PlanToken(plan)?.digest ?? plan.lowercased()
        let found = try await Self.isPlan(plan) ? store.openApprovals(startingWith: text, limit: Self.openMax) : []
        guard let first = found.first else {
            throw Failure(
                .notFound,
                "no plan \(plan) waits for approval: it has changed, was rejected or was already used; `fanfare approvals` lists "
                    + "what waits")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.request.digest.prefix(Self.digestDigitsMin)) (\($0.request.summary))" }
            throw Failure(.invalidData, "\(plan) matches \(found.count) plans: give \(names.joined(separator: " or "))")
        }
        return first
    }

    func people() async throws -> People { try await rules?.people(in: store) ?? People() }

    func result(_ record: ApprovalRecord, now: Timestamp) async throws -> ApprovalResult {
        result(record, try await people(), now: now)
    }

    func result(_ record: ApprovalRecord, _ people: People, now: Timestamp) -> ApprovalResult {
        let rules = rules ?? ApprovalRules(rules: [])
        let request = record.request
        let rule = rules.rule(forReach: request.reach) ?? ApprovalRules.Rule(above: 0, needs: request.needs)
        let policy = ApprovalPolicy(
            rule: rule, reach: request.reach, authors: Set(request.authors.map(people.person)))
        return ApprovalResult(record, people, policy, now: now)
    }
}

extension ApprovalRules {
    /// Returns the people with their accounts, including tokens that the configuration names by id.
    func people(in store: any ApprovalLog) async throws -> People {
        let ids = people.tokenIDs
        return people.people(tokenNames: ids.isEmpty ? [:] : try await store.tokenNames(of: ids))
    }
}
