import CampaignFiles
import Foundation
package import Model
import Sending
package import Store

/// Asks for approval of plans, signs and rejects them, and says what a run must show before it is made.
package struct ApprovePlans: Sendable {
    private static let openMax = 1000
    static let pastMax = 200
    private static let digestDigitsMin = 12

    package typealias PlanStore = DeviceRegistry & ApprovalLog & RunLog & OutcomeReader

    let store: any PlanStore
    private let rules: ApprovalRules?

    /// - Parameter rules: nil: nothing needs approval.
    package init(store: any PlanStore, rules: ApprovalRules?) {
        self.store = store
        self.rules = rules
    }

    /// What a run of so many devices must show; nil: nothing. Throws ``Unapproved`` for what no signature lets pass.
    ///
    /// - Parameters:
    ///   - occurrence: of the campaign's schedule; empty: a run that somebody starts.
    ///   - files: hashes of those that the definition was read from, by path.
    ///   - brokenGlass: why it is to start without signatures; nil: it is not.
    package func demand(
        _ definition: RunDefinition, occurrence: String, reach: Int, by actor: Actor, now: Timestamp,
        files: [String: String] = [:], brokenGlass: String? = nil
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
        if brokenGlass != nil, !rules.mayBreakGlass(person) { throw refuse(.glassNotBroken(person: person)) }
        let authors = try await PlanAuthors(store: store, rules: rules).authors(of: definition, files: files)
        let request = ApprovalRequest(
            definition: definition, occurrence: occurrence, plan: plan,
            digest: digest.text, reach: reach, needs: rule.needs,
            authors: authors.union([actor.identity]).sorted(), askedBy: actor.identity, askedAt: now)
        return ApprovalDemand(
            policy: ApprovalPolicy(rule: rule, reach: reach, authors: Set(authors.map(people.person))),
            people: people, request: request, brokenGlass: brokenGlass, segments: digest.segments)
    }

    /// What somebody said no to does not go because it is for fewer by now, or since the rules have changed.
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

    /// Puts a plan on record to be signed, also one that was rejected before, and anew where a key can sign it no more; nil:
    /// a run of it needs nobody's approval.
    package func ask(
        _ definition: RunDefinition, occurrence: String, reach: Int, by actor: Actor, now: Timestamp,
        files: [String: String] = [:]
    ) async throws -> ApprovalResult? {
        let demand = try await demand(
            definition, occurrence: occurrence, reach: reach, by: actor, now: now, files: files)
        guard let demand else { return nil }
        let request = demand.request
        let known = try await store.approval(
            campaign: request.campaign, occurrence: occurrence, digest: request.digest)
        // Those of a run that somebody starts may be several at once, and end by themselves.
        if !occurrence.isEmpty, let known, known.request.state == .open,
            try await confirmed(now) - known.request.askedAt > demand.policy.rule.within,
            try await result(known, now: now).missing == known.request.needs
        {
            try await store.lapseApprovals(campaign: request.campaign, occurrence: occurrence, now: now)
        }
        return try await result(record(demand, isAnew: true, by: actor, now: now), now: now)
    }

    /// The people who signed another plan of the same campaign and occurrence, by name.
    func signers(besides request: ApprovalRequest) async throws -> [String] {
        let others = try await store.approvals(in: [.open], limit: Self.openMax).filter {
            $0.request.campaign == request.campaign && $0.request.occurrence == request.occurrence
                && $0.request.digest != request.digest
        }
        return Set(others.flatMap(\.signatures).filter { !$0.isRejection }.map(\.name)).sorted()
    }

    /// Puts on record that a plan waits, and ends those that nothing waits for any more.
    func record(
        _ demand: ApprovalDemand, isAnew: Bool, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord {
        try await lapse(now: now)
        return try await store.requestApproval(demand.request, isAnew: isAnew, by: actor)
    }

    /// Ends plans of runs that somebody wanted to start, whose signatures could not count any more, and those of
    /// occurrences that were sent otherwise. None lapses by a clock that was just set forward.
    package func lapse(now: Timestamp) async throws {
        let longest = rules?.rules.map(\.within).max() ?? ApprovalRules.Rule(above: 0, needs: 1).within
        try await store.lapseApprovals(before: confirmed(now) - longest)
    }

    private func confirmed(_ now: Timestamp) async throws -> Timestamp {
        ConfirmedTime(now, after: try await store.clockSteps(since: now - ConfirmedTime.confirmedAfter * 2)).moment
    }

    /// What waits comes first.
    ///
    /// - Parameter includingPast: also those that nobody can sign any more.
    package func list(includingPast: Bool, now: Timestamp) async throws -> ApprovalListResult {
        var records = try await store.approvals(in: [.open], limit: Self.openMax)
        if includingPast {
            let past = Set(ApprovalRequest.State.allCases).subtracting([.open])
            records += try await store.approvals(in: past, limit: Self.pastMax)
        }
        let people = try await people()
        return ApprovalListResult(approvals: records.map { result($0, people, now: now) })
    }

    /// One that waits.
    ///
    /// - Parameter plan: as `fanfare plan` prints it, or the first digits of its digest.
    package func waiting(_ plan: String, now: Timestamp) async throws -> ApprovalResult {
        try await result(find(plan), now: now)
    }

    /// The same beside the campaign's last run, with its devices counted.
    package func detail(_ plan: String, now: Timestamp) async throws -> ApprovalDetailResult {
        let record = try await find(plan)
        let campaign = record.request.definition.campaign
        return ApprovalDetailResult(
            try await result(record, now: now), record.request.definition,
            segments: try await store.segmentContents(of: campaign),
            correction: rules?.correctionPath(record.request.definition).flatMap {
                TemplateFile.load(path: $0).0?.template
            },
            sentTo: try await store.reach(of: campaign, budget: nil, now: now).environmentWords,
            previous: try await PreviousRun.find(campaign: record.request.campaign, in: store))
    }

    /// - Parameters:
    ///   - plan: as `fanfare plan` prints it, or the first digits of its digest.
    ///   - shown: the plan with its reach as whoever signs has seen it; nil: the one that `plan` names.
    ///   - isRejection: says no, which is the end of it.
    package func sign(
        _ plan: String, shown: String? = nil, isRejection: Bool = false, reason: String?, by actor: Actor,
        now: Timestamp
    ) async throws -> ApprovalResult {
        var record = try await find(plan)
        if !isRejection {
            record = try await recounted(record, by: actor, now: now)
            try requireShown(shown ?? plan, record.request)
            try await requireUnchanged(record.request)
            let people = try await people()
            try requireOther(actor.identity, record.request, people)
            if rules != nil { try requireCounts(actor, record, people) }
        }
        let signature = ApprovalSignature(
            identity: actor.identity, name: actor.name, signedAt: now, reach: record.request.reach,
            isRejection: isRejection, reason: try RecordedReason.checked(reason), uid: actor.identityUID)
        return try await result(store.sign(record.request.id, signature, by: actor), now: now)
    }

    /// What somebody without an account signs; see ``sign(_:signature:by:now:)``.
    package func statement(_ plan: String) async throws -> String {
        SignedStatement(try await find(plan).request).text
    }

    /// Takes a signature that was made elsewhere, by a key that `people` names. It is good as if it was made when the plan
    /// was asked for: so it lapses whoever brings it again.
    ///
    /// - Parameter signature: the path of a file, 64 bytes of Ed25519 over ``statement(_:)``.
    package func sign(
        _ plan: String, signature: String, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        let record = try await find(plan)
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
                "\(signature) is no signature of this plan by a key of `people`: it is for another plan, for an earlier "
                    + "request or reach, or by another key; `fanfare approvals \(plan) --statement` prints what is signed"
            )
        }
        let person = people.person(identity)
        try requireOther(identity, record.request, people)
        try await requireUnchanged(record.request)
        if let rule = rules?.rule(forReach: record.request.reach), now - record.request.askedAt > rule.within {
            throw Failure(
                .refused,
                "\(record.request.words), was asked for at \(record.request.askedAt.iso8601), and a key's signature has "
                    + "lapsed \(WrittenDuration.text(rule.within)) later; ask anew with `fanfare plan "
                    + "\(record.request.campaign) --for-approval`, and sign that")
        }
        let signed = ApprovalSignature(
            identity: identity, name: "\(person), by a key", signedAt: record.request.askedAt,
            reach: record.request.reach)
        return try await result(store.sign(record.request.id, signed, by: actor, now: now), now: now)
    }

    /// Whether it is worth to make the run: the signatures suffice for as many as there are, or none are needed any more, or
    /// the files say something else by now.
    ///
    /// - Parameter files: hashes of those that the definition was read from, by path.
    package func isReady(
        _ record: ApprovalRecord, _ definition: RunDefinition, files: [String: String], now: Timestamp
    ) async throws -> Bool {
        let request = record.request
        if try await digest(definition, request.occurrence, files).text != request.digest { return true }
        guard rules?.rule(forReach: request.reach) != nil else { return true }
        if try await result(record, now: now).missing == 0 { return true }
        guard record.signatures.contains(where: { $0.reach != request.reach }) else { return false }
        // Perhaps there are as many again as were signed.
        var counted = record
        counted.request.reach = try await reach(of: definition, now: now)
        return try await result(counted, now: now).missing == 0
    }

    func reach(of definition: RunDefinition, now: Timestamp) async throws -> Int {
        let waves = RecipientWaves(definition, startedAt: now)
        return try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: now).total
    }

    /// With as many devices on record as it would reach now, where a signature for as many as there were would not count.
    private func recounted(
        _ record: ApprovalRecord, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord {
        var request = record.request
        guard let rules, let rule = rules.rule(forReach: request.reach) else { return record }
        let before = request.reach
        request.reach = try await reach(of: request.definition, now: now)
        guard Double((request.reach - before).magnitude) * 100 > rule.driftPercent * Double(before) else {
            return record
        }
        request.needs = rules.rule(forReach: request.reach)?.needs ?? request.needs
        request.plan = try PlanToken(request.definition, reach: request.reach, digest: request.digest).description
        return try await store.requestApproval(request, isAnew: false, by: actor)
    }

    /// Whether a text names a plan, and not a run.
    package static func isPlan(_ text: String) -> Bool {
        PlanToken(text) != nil || PlanToken.isOutdated(text)
            || (text.utf8.count >= digestDigitsMin && text.allSatisfy(\.isHexDigit))
    }

    func digest(
        _ definition: RunDefinition, _ occurrence: String, _ files: [String: String]
    ) async throws -> PlanDigest {
        try await PlanDigest(of: definition, occurrence: occurrence, in: store, rules, files: files)
    }

    private func find(_ plan: String) async throws -> ApprovalRecord {
        if PlanToken.isOutdated(plan) { throw PlanToken.fault(plan) }
        // By the digest alone: the short hashes in a token keep out nobody who looks for a match.
        let text = PlanToken(plan)?.digest ?? plan.lowercased()
        let found = try await Self.isPlan(plan) ? store.openApprovals(startingWith: text, limit: Self.openMax) : []
        guard let first = found.first else {
            throw Failure(
                .notFound,
                "no plan \(plan) waits for approval: it has changed, was rejected or used up; `fanfare approvals` lists "
                    + "what waits")
        }
        guard found.count == 1 else {
            let names = found.map { "\($0.request.digest.prefix(Self.digestDigitsMin)) (\($0.request.words))" }
            throw Failure(.invalidData, "\(plan) names \(found.count) plans: give \(names.joined(separator: " or "))")
        }
        return first
    }

    /// Nobody signs for a number of devices that they have not seen.
    private func requireShown(_ shown: String, _ request: ApprovalRequest) throws {
        let digits = request.digest.prefix(Self.digestDigitsMin)
        if PlanToken.isOutdated(shown) { throw PlanToken.fault(shown) }
        guard let token = PlanToken(shown) else {
            throw Failure(
                .invalidData,
                "what was shown is signed: give the plan with its reach, as `fanfare approvals \(digits)` or "
                    + "GET /approvals/{plan} has it")
        }
        guard let current = PlanToken(request.plan), token.isSameBut(reach: current.reach, of: current) else {
            throw Failure(
                .refused, "\(shown) is not the plan that waits here; look at it with `fanfare approvals \(digits)`")
        }
        guard token.reach != current.reach else { return }
        throw Failure(
            .refused,
            "\(request.words), was shown for \(token.reach.counted("device")) and would reach "
                + "\(current.reach.grouped) by now; look at it again with `fanfare approvals \(digits)`")
    }

    /// The page of a plan shows segments and the correction as they are now: so they must be what the plan stands for.
    private func requireUnchanged(_ request: ApprovalRequest) async throws {
        guard try await digest(request.definition, request.occurrence, [:]).text != request.digest else { return }
        throw Failure(
            .refused,
            "\(request.words), is not as it was asked for: a segment that it names, or its prepared correction, has changed; "
                + "ask anew with `fanfare plan \(request.campaign) --for-approval`, and look at it again")
    }

    /// A signature that could not count is told at once.
    private func requireCounts(_ actor: Actor, _ record: ApprovalRecord, _ people: People) throws {
        let person = people.person(actor.identity)
        guard people.knows(actor.identity) else {
            throw Failure(
                .refused,
                "\(actor.identity) is nobody's account in `people`, and cannot approve of "
                    + "\(record.request.words); the configuration says whose it is")
        }
        let other = record.signatures.first { $0.identity != actor.identity && people.person($0.identity) == person }
        if let other {
            throw Failure(
                .refused,
                "\(person) has signed \(record.request.words), with another account (\(other.name)); somebody else must"
            )
        }
    }

    private func requireOther(_ identity: String, _ request: ApprovalRequest, _ people: People) throws {
        guard let rules, rules.rule(forReach: request.reach)?.notByAuthor ?? true else { return }
        let person = people.person(identity)
        guard request.authors.contains(where: { people.person($0) == person }) else { return }
        throw Failure(
            .refused,
            "\(person) had a hand in \(request.words), or asked for it, and cannot approve of it; somebody else must")
    }

    /// Throws where whoever wrote or started a run would let a stage of it begin, or an account that is nobody's, and a run
    /// of so many devices is not theirs to approve.
    func requireOther(than run: Run, _ actor: Actor) async throws {
        guard let rules, rules.rule(forReach: run.counts.audience)?.notByAuthor == true else { return }
        let people = try await people()
        let person = people.person(actor.identity)
        guard people.knows(actor.identity) else {
            throw Failure(.refused, "\(person) is nobody's account in `people`, and cannot approve of run \(run.id)")
        }
        let made = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        let event = try await store.events(made, before: nil, limit: 1).events.first
        var authors = try await PlanAuthors(store: store, rules: rules)
            .authors(of: run.definition, files: event?.files ?? [:])
        if let event { authors.insert(event.actor.identity) }
        guard authors.contains(where: { people.person($0) == person }) else { return }
        throw Failure(
            .refused,
            "\(person) had a hand in run \(run.id), or started it, and cannot approve of its stages; somebody else must"
        )
    }

    private func people() async throws -> People { try await rules?.people(in: store) ?? People() }

    private func result(_ record: ApprovalRecord, now: Timestamp) async throws -> ApprovalResult {
        result(record, try await people(), now: now)
    }

    private func result(_ record: ApprovalRecord, _ people: People, now: Timestamp) -> ApprovalResult {
        let rules = rules ?? ApprovalRules(rules: [])
        let request = record.request
        let rule = rules.rule(forReach: request.reach) ?? ApprovalRules.Rule(above: 0, needs: request.needs)
        let policy = ApprovalPolicy(
            rule: rule, reach: request.reach, authors: Set(request.authors.map(people.person)))
        return ApprovalResult(record, people, policy, now: now)
    }
}

extension ApprovalRules {
    /// Returns whose the accounts are, tokens that are named by id included.
    func people(in store: any ApprovalLog) async throws -> People {
        let ids = people.tokenIDs
        return people.people(tokenNames: ids.isEmpty ? [:] : try await store.tokenNames(of: ids))
    }
}

extension PlanToken {
    fileprivate func isSameBut(reach: Int, of other: PlanToken) -> Bool {
        var own = self
        own.reach = reach
        return own == other
    }
}
