package import Model

/// Plans that wait for signatures, who signed them, and the runs that were made with them.
///
/// Each method is one transaction. A request serves one run: whoever is first has it.
package protocol ApprovalLog: Sendable {
    /// Puts on record that a plan waits, with an event; the open request of the same plan and occurrence stays, and takes
    /// over the count of devices, what is needed and who the authors are. Open ones of the same occurrence with another plan
    /// are replaced. Nothing is written for a plan that was rejected, unless `isAnew`: then that one's signatures do not
    /// count any more, and neither does the rejection.
    func requestApproval(_ request: ApprovalRequest, isAnew: Bool, by actor: Actor) async throws -> ApprovalRecord

    /// Newest first.
    ///
    /// - Parameter states: nil: all.
    func approvals(in states: Set<ApprovalRequest.State>?, limit: Int) async throws -> [ApprovalRecord]

    /// The latest of exactly this plan, whatever became of it; nil: nobody ever asked.
    func approval(campaign: String, occurrence: String, digest: String) async throws -> ApprovalRecord?

    /// Open ones whose digest begins with a text, newest first.
    func openApprovals(startingWith text: String, limit: Int) async throws -> [ApprovalRecord]

    /// Returns the names of access tokens by id, for accounts in `people` that are written as `token:#17`. A token of a
    /// sign-in link (``AccessToken/linkPrefix``) has none: it gets its id from the person who opens the link.
    func tokenNames(of ids: Set<Int64>) async throws -> [Int64: String]

    /// The campaign's newest finished run that had its signatures; nil: none had.
    func latestSignedRun(campaign: String) async throws -> Run?

    /// Those that a daemon looks at, of occurrences that have no run yet, newest first: open ones, and such as were
    /// rejected since `rejectedSince`.
    func awaitedApprovals(rejectedSince: Timestamp, limit: Int) async throws -> [ApprovalRecord]

    /// Adds a signature, with an event of `now`; a rejection ends the request. An account's earlier signature is replaced;
    /// brought once more with the same date it keeps its place in the audit, and so what was seen of the clock since.
    /// ``StoreError/approvalClosed(_:)`` for one that is not open.
    ///
    /// - Parameter actor: whoever brings it.
    func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord

    /// Ends open ones of an occurrence that will not be sent.
    func lapseApprovals(campaign: String, occurrence: String, now: Timestamp) async throws

    /// Ends open ones that nothing waits for: of runs that somebody starts, asked for and signed the last time before
    /// `moment`, and of occurrences that have a run.
    func lapseApprovals(before moment: Timestamp) async throws

    /// As ``RunLog/createRun(_:occurrence:isTest:now:by:notes:files:volume:limits:)``, for a run that needs signatures: they are weighed,
    /// and their request is used up, in the transaction that makes it. Throws ``Unapproved`` and writes nothing where they
    /// do not suffice; a run that is there already is returned whatever they say.
    func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool)
}

extension ApprovalLog {
    package func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, limits: ReachLimits? = nil
    ) async throws -> (run: Run, isNew: Bool) {
        try await createApprovedRun(
            definition, occurrence: occurrence, now: now, by: actor, notes: notes, files: files, demand: demand,
            volume: nil, limits: limits)
    }

    /// A signature that is recorded when it is given.
    package func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor
    ) async throws -> ApprovalRecord {
        try await sign(request, signature, by: actor, now: signature.signedAt)
    }
}
