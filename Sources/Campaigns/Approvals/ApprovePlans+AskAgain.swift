package import Model
import Store

/// Requests approval again for a plan that was rejected.
extension ApprovePlans {
    /// Returns the latest request of a plan, in any state; `nil` if approval was never requested.
    ///
    /// - Parameters:
    ///   - occurrence: the occurrence of the campaign's schedule; empty for a plan that a person starts.
    ///   - digest: the complete digest, in hex.
    func latest(
        campaign: String, occurrence: String, digest: String, now: Timestamp
    ) async throws -> ApprovalResult? {
        guard let found = try await store.approval(campaign: campaign, occurrence: occurrence, digest: digest) else {
            return nil
        }
        return try await compared(result(found, now: now), found.request)
    }

    /// Returns the rejected plan with this digest. Throws if its newest request was not rejected.
    ///
    /// - Parameter digest: the complete digest, in hex.
    package func rejected(_ digest: String) async throws -> ApprovalRequest {
        guard let found = try await store.approval(.digest(digest)), found.request.state == .rejected else {
            throw Failure(.notFound, "no rejected plan \(digest)")
        }
        return found.request
    }

    /// Ends a request at the wish of the person who made it.
    ///
    /// - Parameter plan: as `fanfare plan` prints it, or the first digits of its digest.
    package func withdraw(_ plan: String, by actor: Actor, now: Timestamp) async throws -> ApprovalResult {
        let record = try await find(plan)
        let people = try await people()
        let asker = people.person(record.request.askedBy)
        guard people.person(actor.identity) == asker else {
            throw Failure(
                .refused,
                "\(asker) requested approval of \(record.request.summary), and no other user can withdraw it; an "
                    + "approver can reject it")
        }
        return try await result(store.withdrawApproval(record.request.id, by: actor, now: now), now: now)
    }

    /// Requests approval of a rejected plan again, with the number of devices that it would reach now. Throws if the
    /// plan's files or segments have changed since the rejection, because the approvers must then review a new plan.
    package func askAgain(
        _ rejected: ApprovalRequest, in files: ManageFiles, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalResult {
        let source = try files.source(ofCampaignNamed: rejected.campaign)
        let given = try source.definition(with: rejected.definition.variables, plannedAt: now)
        let scheduled = rejected.occurrence.isEmpty ? nil : ScheduledOccurrence(given, named: rejected.occurrence)
        let definition = scheduled?.definition ?? given
        guard try await digest(definition, rejected.occurrence, source.hashes).text == rejected.digest else {
            throw Failure(
                .refused,
                "the campaign \(rejected.campaign), a template or a segment has changed since the plan was rejected; "
                    + "plan the run again, and request approval of the new plan")
        }
        let asked = try await ask(
            definition, occurrence: rejected.occurrence, reach: try await reach(of: definition, now: now),
            note: rejected.note, by: actor, now: now, files: source.hashes)
        guard let asked else {
            throw Failure(
                .refused, "a run of \(rejected.campaign) no longer needs signatures; plan the run again, and start it")
        }
        return asked
    }
}
