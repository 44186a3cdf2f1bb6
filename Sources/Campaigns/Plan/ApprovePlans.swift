import CampaignFiles
import Foundation
package import Model
import Sending
package import Store

/// Asks for approval of plans, signs and rejects them, and says what a run must show before it is made.
package struct ApprovePlans: Sendable {
    private static let listMax = 200
    private static let digestDigitsMin = 12

    package typealias PlanStore = DeviceRegistry & ApprovalLog & RunLog & OutcomeReader

    private let store: any PlanStore
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
    ///   - brokenGlass: why it is to start without signatures; nil: it is not.
    package func demand(
        _ definition: RunDefinition, occurrence: String, reach: Int, by actor: Actor, now: Timestamp,
        brokenGlass: String? = nil
    ) async throws -> ApprovalDemand? {
        guard let rules else { return nil }
        let rule = rules.rule(forReach: reach)
        let plan = try PlanToken(definition, reach: reach).description
        func refuse(_ cause: Unapproved.Cause) -> Unapproved {
            Unapproved(campaign: definition.campaign.name, plan: plan, reach: reach, rule: rule, cause: cause)
        }
        if let ceiling = rules.ceiling, reach > ceiling { throw refuse(.ceiling(ceiling)) }
        guard let rule else { return nil }
        let person = rules.people.person(actor.identity)
        if brokenGlass != nil, !rules.mayBreakGlass(person) { throw refuse(.glassNotBroken(person: person)) }
        let authors = try await PlanAuthors(store: store, rules: rules).authors(of: definition)
        let request = ApprovalRequest(
            definition: definition, occurrence: occurrence, plan: plan,
            digest: try await digest(definition, occurrence), reach: reach, needs: rule.needs,
            authors: authors.union([actor.identity]).sorted(), askedBy: actor.identity, askedAt: now)
        return ApprovalDemand(
            policy: ApprovalPolicy(rule: rule, reach: reach, authors: []), people: rules.people, request: request,
            brokenGlass: brokenGlass)
    }

    /// Puts a plan on record to be signed, also one that was rejected before; nil: a run of it needs nobody's approval.
    package func ask(
        _ definition: RunDefinition, occurrence: String, reach: Int, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult? {
        let demand = try await demand(definition, occurrence: occurrence, reach: reach, by: actor, now: now)
        guard let demand else { return nil }
        return result(try await store.requestApproval(demand.request, isAnew: true, by: actor), now: now)
    }

    /// - Parameter includingPast: also those that nobody can sign any more.
    package func list(includingPast: Bool, now: Timestamp) async throws -> ApprovalListResult {
        let records = try await store.approvals(in: includingPast ? nil : [.open], limit: Self.listMax)
        return ApprovalListResult(approvals: records.map { result($0, now: now) })
    }

    /// One that waits.
    ///
    /// - Parameter plan: as `fanfare plan` prints it, or the first digits of its digest.
    package func waiting(_ plan: String, now: Timestamp) async throws -> ApprovalResult {
        result(try await find(plan), now: now)
    }

    /// The same beside the campaign's last run, with its devices counted.
    package func detail(_ plan: String, now: Timestamp) async throws -> ApprovalDetailResult {
        let record = try await find(plan)
        let campaign = record.request.definition.campaign
        return ApprovalDetailResult(
            result(record, now: now), record.request.definition,
            sentTo: try await store.reach(of: campaign, budget: nil, now: now).environmentWords,
            previous: try await PreviousRun.find(campaign: record.request.campaign, in: store))
    }

    /// - Parameters:
    ///   - plan: as `fanfare plan` prints it, or the first digits of its digest.
    ///   - isRejection: says no, which is the end of it.
    package func sign(
        _ plan: String, isRejection: Bool = false, reason: String?, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        let record = try await find(plan)
        if !isRejection { try requireOther(actor.identity, record.request) }
        let reach = PlanToken(plan)?.reach ?? record.request.reach
        let signature = ApprovalSignature(
            identity: actor.identity, name: actor.name, signedAt: now, reach: reach, isRejection: isRejection,
            reason: reason.map { Redaction.withoutTokens($0) })
        return result(try await store.sign(record.request.id, signature, by: actor), now: now)
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
        let people = rules?.people ?? People()
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
        try requireOther(identity, record.request)
        let signed = ApprovalSignature(
            identity: identity, name: "\(person), by a key", signedAt: record.request.askedAt,
            reach: record.request.reach)
        return result(try await store.sign(record.request.id, signed, by: actor), now: now)
    }

    /// Whether it is worth to count the devices again: the signatures suffice for as many as there were, or the files say
    /// something else by now.
    package func isReady(_ record: ApprovalRecord, _ definition: RunDefinition, now: Timestamp) async throws -> Bool {
        let digest = try await digest(definition, record.request.occurrence)
        return digest != record.request.digest || result(record, now: now).missing == 0
    }

    /// Whether a text names a plan, and not a run.
    package static func isPlan(_ text: String) -> Bool {
        PlanToken(text) != nil || (text.utf8.count >= digestDigitsMin && text.allSatisfy(\.isHexDigit))
    }

    /// SHA-256 of everything that a signature stands for: audience, texts of every language, variables, stages and, of a
    /// scheduled occurrence, its time. A short hash would not keep out somebody who looks for a match.
    func digest(_ definition: RunDefinition, _ occurrence: String) async throws -> String {
        var definition = definition
        definition.campaign.variables = [:]
        definition.campaign.audience.source = ""
        if occurrence.isEmpty { definition.plannedAt = Timestamp(milliseconds: 0) }
        let stages = definition.campaign.stages ?? []
        let named = stages.reduce(into: definition.campaign.audience.expression.segments) { names, stage in
            names.formUnion(stage.seeds?.segments ?? [])
        }
        var segments: [String: String] = [:]
        if !named.isEmpty || definition.campaign.audienceSQL != nil {
            // One may name another: a new definition of any makes another plan.
            for segment in try await store.segments(now: nil) {
                if case .dynamic(let source) = segment.kind { segments[segment.name] = source }
            }
        }
        let signed = SignedPlan(
            purpose: "fanfare plan", occurrence: occurrence, definition: definition, segments: segments)
        return ContentHash.sha256(Array(try StoredJSON.text(signed).utf8))
    }

    private func find(_ plan: String) async throws -> ApprovalRecord {
        let token = PlanToken(plan)
        let found = try await store.approvals(in: [.open], limit: Self.listMax).filter { record in
            guard let token else { return record.request.digest.hasPrefix(plan.lowercased()) }
            return PlanToken(record.request.plan)?.isSameBut(reach: token.reach, of: token) ?? false
        }
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

    private func requireOther(_ identity: String, _ request: ApprovalRequest) throws {
        guard let rules, rules.rule(forReach: request.reach)?.notByAuthor ?? true else { return }
        let person = rules.people.person(identity)
        guard request.authors.contains(where: { rules.people.person($0) == person }) else { return }
        throw Failure(
            .refused,
            "\(person) had a hand in \(request.words), or asked for it, and cannot approve of it; somebody else must")
    }

    private func result(_ record: ApprovalRecord, now: Timestamp) -> ApprovalResult {
        let rules = rules ?? ApprovalRules(rules: [])
        let request = record.request
        let rule = rules.rule(forReach: request.reach) ?? ApprovalRules.Rule(above: 0, needs: request.needs)
        let policy = ApprovalPolicy(
            rule: rule, reach: request.reach, authors: Set(request.authors.map(rules.people.person)))
        return ApprovalResult(record, rules.people, policy, now: now)
    }
}

extension ApprovalRules {
    fileprivate func mayBreakGlass(_ person: String) -> Bool {
        breakGlass && (breakGlassBy.isEmpty || breakGlassBy.contains(person))
    }
}

/// What a signature stands for, in the one form that is hashed.
private struct SignedPlan: Encodable {
    var purpose: String
    var occurrence: String
    var definition: RunDefinition
    /// The expressions of dynamic ones, by name.
    var segments: [String: String]
}

extension PlanToken {
    fileprivate func isSameBut(reach: Int, of other: PlanToken) -> Bool {
        var own = self
        own.reach = reach
        return own == other
    }
}

/// The stable shape of a plan that waits for signatures, or did; keys are written in snake_case.
package struct ApprovalResult: Codable, Hashable, Sendable {
    package struct Signature: Codable, Hashable, Sendable {
        package var by: String
        package var person: String
        package var signedAt: String
        package var lapsesAt: String
        package var reach: Int
        package var isRejection: Bool
        package var reason: String?
        /// Why it does not count, in words; absent: it does.
        package var fault: String?
    }

    package var campaign: String
    /// The app.
    package var topic: String
    /// Absent: for a run that somebody starts.
    package var occurrence: String?
    package var plan: String
    package var digest: String
    package var reach: Int
    package var state: String
    package var needs: Int
    /// How many signatures are missing.
    package var missing: Int
    package var askedBy: String
    package var askedAt: String
    package var authors: [String]
    package var signatures: [Signature]
    /// That was made with it.
    package var run: Int64?

    init(_ record: ApprovalRecord, _ people: People, _ policy: ApprovalPolicy, now: Timestamp) {
        let request = record.request
        campaign = request.campaign
        topic = request.definition.campaign.topic
        occurrence = request.occurrence.isEmpty ? nil : request.occurrence
        (plan, digest, reach, state) = (request.plan, request.digest, request.reach, request.state.rawValue)
        needs = policy.rule.needs
        askedBy = people.person(request.askedBy)
        askedAt = request.askedAt.iso8601
        authors = Set(request.authors.map(people.person)).sorted()
        run = request.run
        let judged = policy.judged(record.signatures, people, now: now)
        missing = max(0, needs - judged.count { $0.fault == nil && !$0.signature.isRejection })
        signatures = judged.map { entry in
            Signature(
                by: entry.signature.name, person: entry.person, signedAt: entry.signature.signedAt.iso8601,
                lapsesAt: (entry.signature.signedAt + policy.rule.within).iso8601, reach: entry.signature.reach,
                isRejection: entry.signature.isRejection, reason: entry.signature.reason, fault: entry.fault?.words)
        }
    }
}

/// The stable shape of `approvals --json`.
package struct ApprovalListResult: Codable, Hashable, Sendable {
    package var approvals: [ApprovalResult]
}
