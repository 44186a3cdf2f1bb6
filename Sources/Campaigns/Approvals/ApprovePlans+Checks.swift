import Foundation
package import Model
import Store

/// The conditions of a signature.
extension ApprovePlans {
    /// Throws unless the approver has seen the number of devices that the signature is for.
    func requireShown(_ shown: String, _ request: ApprovalRequest) throws {
        let digits = request.digest.prefix(Self.digestDigitsMin)
        if PlanToken.isOutdated(shown) { throw PlanToken.fault(shown) }
        guard let token = PlanToken(shown) else {
            throw Failure(
                .invalidData,
                "a signature covers the plan as displayed: give its hash and reach, as `fanfare approvals \(digits)` "
                    + "or GET /approvals/{plan} shows it")
        }
        guard let current = PlanToken(request.plan), token.isSameBut(reach: current.reach, of: current) else {
            throw Failure(
                .refused, "\(shown) is not the plan that waits here; display it with `fanfare approvals \(digits)`")
        }
        guard token.reach != current.reach else { return }
        throw Failure(
            .refused,
            "\(request.summary), was shown for \(token.reach.counted("device")) and would reach "
                + "\(current.reach.grouped) now; display it again with `fanfare approvals \(digits)`")
    }

    /// Throws if a segment or the prepared correction has changed since the request.
    func requireUnchanged(_ request: ApprovalRequest) async throws {
        guard try await digest(request.definition, request.occurrence, [:]).text != request.digest else { return }
        throw Failure(
            .refused,
            "\(request.summary), has changed since it was requested (a segment that it names, or its correction); "
                + "request approval again with `fanfare plan \(request.campaign) --for-approval`, and check it")
    }

    /// Throws if the signature could not count: `people` lacks the account, or its person has already signed.
    func requireCounts(_ actor: Actor, _ record: ApprovalRecord, _ people: People) throws {
        let person = people.person(actor.identity)
        guard people.knows(actor.identity) else {
            throw Failure(
                .refused,
                "\(actor.identity) has no entry in `people`, and cannot approve "
                    + "\(record.request.summary); ask the operator to add it")
        }
        let other = record.signatures.first {
            $0.identity != actor.identity && !$0.isRevoked && people.person($0.identity) == person
        }
        if let other {
            throw Failure(
                .refused,
                "\(person) already signed \(record.request.summary), with another account (\(other.name)); another person must"
            )
        }
    }

    /// Adds the authors since the request. The start asks for them again, so a signature that would not count there
    /// is refused now.
    func withContributors(_ record: ApprovalRecord) async throws -> ApprovalRecord {
        var record = record
        let request = record.request
        let contributors = try await store.contributors(
            campaign: request.campaign, occurrence: request.occurrence, digest: request.digest)
        record.request.authors = contributors.union(request.authors).sorted()
        return record
    }

    func requireOther(_ identity: String, _ request: ApprovalRequest, _ people: People) throws {
        let person = people.person(identity)
        guard isAuthor(person, of: request, people) else { return }
        throw Failure(
            .refused,
            "\(person) worked on \(request.summary) or requested it, and cannot approve it; another person must")
    }

    /// Returns whether the person made or wrote the plan, and the rule for a plan of this size excludes its authors.
    func isAuthor(_ person: String, of request: ApprovalRequest, _ people: People) -> Bool {
        guard let rules, rules.rule(forReach: request.reach)?.notByAuthor ?? true else { return false }
        return request.authors.contains { people.person($0) == person }
    }

    /// Throws if the actor wrote or started the run, or if `people` does not list the actor's account. Applies only if
    /// the rule for a run of this size excludes its authors.
    package func requireOther(than run: Run, _ actor: Actor) async throws {
        guard let rules, rules.rule(forReach: run.counts.audience)?.notByAuthor == true else { return }
        let people = try await people()
        let person = people.person(actor.identity)
        guard people.knows(actor.identity) else {
            throw Failure(.refused, "\(person) has no entry in `people`, and cannot approve run \(run.id)")
        }
        let made = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        let event = try await store.events(made, before: nil, limit: 1).events.first
        var authors = try await ContributorLookup(store: store, rules: rules)
            .authors(of: run.definition, files: event?.files ?? [:])
        if let event { authors.insert(event.actor.identity) }
        guard authors.contains(where: { people.person($0) == person }) else { return }
        throw Failure(
            .refused,
            "\(person) worked on run \(run.id) or started it, and cannot approve its stages; another person must"
        )
    }
}

extension PlanToken {
    fileprivate func isSameBut(reach: Int, of other: PlanToken) -> Bool {
        var own = self
        own.reach = reach
        return own == other
    }
}
