import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The operations for plans that need approvals before anything is sent.
struct ApprovalOperations: Sendable {
    struct ApproveBody: Codable, Sendable {
        /// The plan's hash as it was shown, which includes the reach. The path may contain it instead.
        var plan: String?
        /// The reason, for the audit log.
        var reason: String?
    }

    struct RejectBody: Codable, Sendable {
        /// The reason, for the audit log.
        var reason: String?
    }

    /// What waits for approval.
    struct ApprovalPage: Codable, Sendable {
        /// The plans.
        var items: [ApprovalResult]
        /// The stages of runs that wait until a person approves them, the oldest run first; absent if there are none.
        /// `POST /runs/{run}/approve` approves one.
        var stages: [WaitingStageResult]?
    }

    let cases: UseCases

    private static let plan = Operation.Parameter.path(
        "plan", "A plan's hash, or at least the first 12 digits of its digest.")
    private static let anyPlan = Operation.Parameter.path(
        "plan", "A plan's hash, at least the first 12 digits of its digest, or a request's number.")
    private static let problems: [HTTPResponse.Status] = [
        .notFound, .conflict, .unprocessableContent, .serviceUnavailable,
    ]

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/approvals", id: "listApprovals", subject: "Approvals",
                about: "Plans that wait for signatures, newest first, with the signatures they have. `stages` lists "
                    + "the stages of runs that wait for a person, the oldest run first; `POST /runs/{run}/approve` "
                    + "approves one.",
                permission: .read,
                parameters: [
                    .query(
                        "all", "`true`: include used, rejected, withdrawn, replaced and lapsed plans.",
                        allowed: ["true", "false"])
                ],
                answers: [.init(.ok, "The plans and the stages.", .json(ApprovalPage.self))],
                problems: [.unprocessableContent], handle: list),
            Operation(
                method: .get, path: "/approvals/{plan}", id: "getApproval", subject: "Approvals",
                about:
                    "A plan compared with its campaign's last run, and what would refuse it now. A plan that no longer "
                    + "waits is found by its number, or by its complete digest.", permission: .read,
                parameters: [Self.anyPlan],
                answers: [.init(.ok, "The plan.", .json(ApprovalDetailResult.self))], problems: Self.problems
            ) { try .json(try await cases.approval($0.path("plan"), for: $0.caller).result) },
            Operation(
                method: .post, path: "/approvals/{plan}/approve", id: "approvePlan", subject: "Approvals",
                about: "Signs a plan for the number of devices shown with it; give its hash in the path or the body. "
                    + "The plan's author and the person who requested it may not sign it.",
                permission: .approve, parameters: [Self.plan], body: .json(ApproveBody.self), needsBody: false,
                answers: [.init(.ok, "The plan.", .json(ApprovalResult.self))], problems: Self.problems
            ) { request in
                let body = try await request.optionalBody(ApproveBody.self)
                let plan = request.path("plan")
                return try .json(
                    try await cases.approve(
                        plan, shown: body?.plan ?? plan, reason: body?.reason, by: request.caller))
            },
            Operation(
                method: .post, path: "/approvals/{plan}/reject", id: "rejectPlan", subject: "Approvals",
                about: "Rejects a plan: it is not sent, even if others have signed it.", permission: .approve,
                parameters: [Self.plan], body: .json(RejectBody.self), needsBody: false,
                answers: [.init(.ok, "The plan.", .json(ApprovalResult.self))], problems: Self.problems
            ) { request in
                let body = try await request.optionalBody(RejectBody.self)
                return try .json(
                    try await cases.reject(request.path("plan"), reason: body?.reason, by: request.caller))
            },
            Operation(
                method: .post, path: "/approvals/{plan}/withdraw", id: "withdrawApproval", subject: "Approvals",
                about: "Withdraws the caller's own request. Its signatures no longer count.", permission: .ask,
                parameters: [Self.plan],
                answers: [.init(.ok, "The plan.", .json(ApprovalResult.self))], problems: Self.problems
            ) { try .json(try await cases.withdraw($0.path("plan"), by: $0.caller)) },
        ].readingTexts
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        let plans = try await cases.approvals(includingPast: try request.boolean("all"), for: request.caller)
        let stages = try await cases.runs.waitingStages(sees: request.caller.sees)
        return try .json(ApprovalPage(items: plans, stages: stages.isEmpty ? nil : stages))
    }
}

extension UseCases {
    /// Returns the approvals of the apps that the caller sees.
    func approvals(includingPast: Bool, for caller: Caller) async throws -> [ApprovalResult] {
        try await approving.list(includingPast: includingPast, now: now).approvals.filter { caller.sees($0.topic) }
    }

    /// Returns an approval. Throws "not found" for a caller that is confined to another app.
    func approval(_ plan: String, for caller: Caller) async throws -> ApprovePlans.Detail {
        let detail = try await approving.detail(plan, by: caller.actor, now: now)
        try caller.requireTopic(detail.result.approval.topic, orNotFound: "no plan \(plan) waits for approval")
        return detail
    }

    /// Signs a plan.
    ///
    /// - Parameter shown: the plan's hash as the approver has seen it, which includes the reach.
    func approve(
        _ plan: String, shown: String?, reason: String?, by caller: Caller
    ) async throws -> ApprovalResult {
        let digest = try await visible(plan, to: caller).digest
        return try await approving.sign(digest, shown: shown, reason: reason, by: caller.actor, now: now)
    }

    func reject(_ plan: String, reason: String?, by caller: Caller) async throws -> ApprovalResult {
        try await approving.sign(
            visible(plan, to: caller).digest, isRejection: true, reason: reason, by: caller.actor, now: now)
    }

    func withdraw(_ plan: String, by caller: Caller) async throws -> ApprovalResult {
        try await approving.withdraw(visible(plan, to: caller).digest, by: caller.actor, now: now)
    }

    /// Requests approval of a rejected plan again.
    ///
    /// - Parameter digest: the complete digest.
    func askAgain(_ digest: String, by caller: Caller) async throws -> ApprovalResult {
        let rejected = try await approving.rejected(digest)
        try caller.requireTopic(rejected.topic, orNotFound: "no plan \(digest) was rejected")
        return try await approving.askAgain(rejected, in: files, by: caller.actor, now: now)
    }

    private func visible(_ plan: String, to caller: Caller) async throws -> ApprovalResult {
        let found = try await approving.waiting(plan, now: now)
        try caller.requireTopic(found.topic, orNotFound: "no plan \(plan) waits for approval")
        return found
    }
}
