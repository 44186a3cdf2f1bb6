package import Model

/// Plans that wait for signatures, their signatures, and the runs that were created with them.
///
/// Each method is one transaction. A request serves one run: the first one that uses it.
package protocol ApprovalLog: Sendable {
    /// Records that a plan waits for approval, with an event. An open request of the same plan and occurrence stays
    /// open, and gets the new number of devices, needed signatures and authors. Open requests of the same occurrence
    /// with another plan are replaced. Nothing is written for a rejected plan, unless `isAnew` is true. In that case
    /// its earlier signatures and its rejection no longer count.
    func requestApproval(_ request: ApprovalRequest, isAnew: Bool, by actor: Actor) async throws -> ApprovalRecord

    /// Stores a new count of an open request: its reach, its needed signatures and its plan. Throws
    /// ``StoreError/approvalClosed(_:)`` if the request is not open.
    func recountApproval(_ request: ApprovalRequest) async throws -> ApprovalRecord

    /// Returns the requests, newest first.
    ///
    /// - Parameter states: `nil` for all states.
    func approvals(in states: Set<ApprovalRequest.State>?, limit: Int) async throws -> [ApprovalRecord]

    /// Returns the latest request of exactly this plan, in any state; `nil` if approval was never requested.
    func approval(campaign: String, occurrence: String, digest: String) async throws -> ApprovalRecord?

    /// Returns the accounts that made exactly this plan, wrote or requested it in any earlier request, or gave the
    /// occurrence its values.
    func contributors(campaign: String, occurrence: String, digest: String) async throws -> Set<String>

    /// Returns the newest request with this name, in any state; `nil` if there is none.
    func approval(_ name: ApprovalName) async throws -> ApprovalRecord?

    /// Ends an open request at the wish of the person who made it, with an event at `now`. Throws
    /// ``StoreError/approvalClosed(_:)`` if the request is not open.
    func withdrawApproval(_ id: Int64, by actor: Actor, now: Timestamp) async throws -> ApprovalRecord

    /// Returns the open requests whose digest begins with a text, newest first.
    func openApprovals(startingWith text: String, limit: Int) async throws -> [ApprovalRecord]

    /// Returns the names of access tokens by id, for accounts in `people` that are written as `token:#17`. A token of
    /// a sign-in link (``AccessToken/linkPrefix``) has no name here.
    func tokenNames(of ids: Set<Int64>) async throws -> [Int64: String]

    /// Returns the campaign's newest finished run that had its signatures; `nil` if there is none.
    func latestSignedRun(campaign: String) async throws -> Run?

    /// Returns the requests that the daemon checks, newest first. These are the open requests, and those that were
    /// rejected since `rejectedSince`. Their occurrences have no run yet.
    func awaitedApprovals(rejectedSince: Timestamp, limit: Int) async throws -> [ApprovalRecord]

    /// Adds a signature, with an event at `now`. A rejection ends the request. A new signature of an account replaces
    /// its earlier one. A repeated signature with the same date keeps its original event in the audit log, so that the
    /// times of all later events still count for `seenAt`. Throws ``StoreError/approvalClosed(_:)`` if the request is
    /// not open.
    ///
    /// - Parameters:
    ///   - actor: the actor that delivers the signature.
    ///   - isApproved: returns whether the signatures of a record suffice. If this signature makes them suffice, the
    ///     webhooks get a message.
    func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp,
        isApproved: @escaping @Sendable (ApprovalRecord) -> Bool
    ) async throws -> ApprovalRecord

    /// Ends the open requests of an occurrence that will not be sent.
    func lapseApprovals(campaign: String, occurrence: String, now: Timestamp) async throws

    /// Ends the open requests that no longer have a use. These are requests of manually started runs whose last request
    /// or signature was before `moment`, and requests of occurrences that have a run.
    func lapseApprovals(before moment: Timestamp) async throws

    /// Does the same as ``RunLog/createRun(_:occurrence:isTest:now:by:notes:files:volume:limits:)`` for a run that
    /// needs signatures. The signatures are evaluated, and their request is used up, in the transaction that creates
    /// the run. Throws ``Unapproved`` and writes nothing if they do not suffice. An existing run is returned whatever
    /// the signatures say.
    func createApprovedRun(
        _ definition: RunDefinition, occurrence: String, now: Timestamp, by actor: Actor, notes: [EventNote],
        files: [String: String], demand: ApprovalDemand, volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool)
}

/// A name of a request that stays the same when the request is closed.
package enum ApprovalName: Hashable, Sendable {
    case number(Int64)
    /// The complete digest of its plan, in hex.
    case digest(String)
    /// The run that was created with it.
    case run(Int64)
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

    package func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor, now: Timestamp
    ) async throws -> ApprovalRecord {
        try await sign(request, signature, by: actor, now: now) { _ in false }
    }

    /// Adds a signature with an event at the time of the signature.
    package func sign(
        _ request: Int64, _ signature: ApprovalSignature, by actor: Actor
    ) async throws -> ApprovalRecord {
        try await sign(request, signature, by: actor, now: signature.signedAt)
    }
}
