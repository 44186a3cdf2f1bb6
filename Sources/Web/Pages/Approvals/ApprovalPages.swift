import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The plans that wait for signatures. A plan is shown beside what was sent the last time, with two buttons.
struct ApprovalPages: Sendable {
    struct ListPage: Sendable {
        var plans: [Plan]
        var isEmpty: Bool
        var problem: String?
    }

    struct Plan: Sendable {
        var address: String
        /// `new-podcast 2026-12-01T09:00`.
        var name: String
        /// The first words that a phone shows, so that two plans of a campaign can be told apart.
        var excerpt: String?
        var state: String
        var colour: String
        var reach: String
        /// `4 devices`.
        var devices: String
        var asked: String
        /// The hash as it is shown, with the plan's reach.
        var hash: String
        /// Whether the request is still open.
        var isOpen: Bool
        /// The address that requests approval again. `nil` if the plan was not rejected, if it has a newer request, or
        /// if the visitor may not request it.
        var askAddress: String?
    }

    struct DetailPage: Sendable {
        struct Signature: Sendable {
            var summary: String
            /// The reason why the signature does not count.
            var fault: String?
        }

        struct Fact: Sendable {
            var name: String
            var now: String
            var before: String
            var differs: Bool
        }

        var plan: Plan
        /// The environments in words. Empty if the plan reaches no device.
        var sentTo: String
        var isProduction: Bool
        var authors: String
        var signatures: [Signature]
        /// The page from which the plan is sent. `nil` if there is none, or if the visitor may not open it.
        var source: PlanPage.Link?
        /// The run that the plan corrects.
        var corrects: Int64?
        var sinceRun: Int64?
        var facts: [Fact]
        var maySign: Bool
        var problem: String?
    }

    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/approvals", .read, list), .get("/approvals/{plan}", .read, detail),
            .post("/approvals/{plan}/approve", .approve) { try await sign($0, isRejection: false) },
            .post("/approvals/{plan}/reject", .approve) { try await sign($0, isRejection: true) },
            .post("/approvals/{plan}/ask", .ask, ask),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        try await page(request, problem: nil)
    }

    private func page(_ request: PageRequest, problem: Problem?) async throws -> Response {
        let caller = try request.caller
        let plans = try await cases.approvals(includingPast: true, for: caller)
        // The newest request of a plan comes first.
        var seen: Set<String> = []
        let rows = plans.map { plan in
            let isNewest = seen.insert(plan.digest).inserted
            return Plan(plan, mayAsk: isNewest && caller.role.may(.ask))
        }
        return try request.page(
            .approvals, title: "Approvals",
            ListPage(plans: rows, isEmpty: rows.isEmpty, problem: problem?.detail),
            status: .init(code: problem?.status ?? 200))
    }

    /// Requests approval of a rejected plan again.
    @Sendable private func ask(_ request: PageRequest) async throws -> Response {
        do {
            let asked = try await cases.askAgain(request.path("plan"), by: request.caller)
            return PageRequest.seeOther("/approvals/\(asked.digest)")
        } catch {
            let problem = Problem(error, for: try request.caller)
            guard problem.status < 500 || problem.status == 503 else { throw error }
            return try await page(request, problem: problem)
        }
    }

    @Sendable private func detail(_ request: PageRequest) async throws -> Response {
        try await page(request, try await cases.approval(request.path("plan"), for: request.caller))
    }

    private func sign(_ request: PageRequest, isRejection: Bool) async throws -> Response {
        let form = try await request.form()
        let reason = form["reason"].flatMap { $0.isEmpty ? nil : $0 }
        let plan = request.path("plan")
        do {
            _ =
                isRejection
                ? try await cases.reject(plan, reason: reason, by: request.caller)
                : try await cases.approve(plan, shown: form["plan"], reason: reason, by: request.caller)
        } catch {
            let problem = Problem(error)
            guard problem.status < 500 || problem.status == 503 else { throw error }
            let detail = try await cases.approval(plan, for: request.caller)
            return try await page(request, detail, problem: problem.detail, status: .init(code: problem.status))
        }
        return PageRequest.seeOther("/approvals")
    }

    private func page(
        _ request: PageRequest, _ found: ApprovePlans.Detail, problem: String? = nil,
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let (detail, approval) = (found.result, found.result.approval)
        return try request.page(
            .approval, title: approval.campaign,
            DetailPage(
                plan: Plan(approval), sentTo: detail.sentTo, isProduction: detail.sentTo.contains("PRODUCTION"),
                authors: approval.authors.joined(separator: ", "),
                signatures: approval.signatures.map(DetailPage.Signature.init),
                source: try await source(found, for: try request.caller), corrects: approval.corrects,
                sinceRun: detail.sinceRun,
                facts: detail.facts.map { fact in
                    DetailPage.Fact(
                        name: fact.name, now: fact.now ?? "none", before: fact.before ?? "", differs: fact.differs)
                }, maySign: try request.caller.role.may(.approve), problem: problem),
            status: status)
    }

    /// Returns the page from which the plan is sent, `nil` if there is none.
    private func source(_ detail: ApprovePlans.Detail, for caller: Caller) async throws -> PlanPage.Link? {
        if detail.result.approval.corrects != nil {
            guard caller.role.may(.run) else { return nil }
            let address = CorrectionPage.address(of: detail.definition)
            return .init(address: address, label: "with phones and the button that sends it")
        }
        return try await cases.plans.plan(digest: detail.result.approval.digest).map {
            .init(address: $0.address, label: "with phones, a test and the button that sends it")
        }
    }
}

extension ApprovalResult {
    fileprivate var isOpen: Bool { state == ApprovalRequest.State.open.rawValue }
}

extension ApprovalPages.Plan {
    fileprivate init(_ approval: ApprovalResult, mayAsk: Bool = false) {
        address = "/approvals/\(approval.digest)"
        name = [approval.campaign, approval.occurrence].compactMap(\.self).joined(separator: " ")
        excerpt = approval.excerpt
        hash = approval.plan
        isOpen = approval.isOpen
        let signed = approval.signed
        state = !isOpen ? approval.state : (approval.missing == 0 ? "approved, " : "awaiting approval, ") + signed
        colour = !isOpen ? "" : approval.missing == 0 ? "accepted" : "paused"
        reach = approval.reach.grouped
        devices = approval.reach.counted("device")
        asked = "\(approval.askedBy), \(approval.askedAt.shownTime)"
        // A correction is asked for again on its own page.
        if mayAsk, approval.corrects == nil, approval.state == ApprovalRequest.State.rejected.rawValue {
            askAddress = "\(address)/ask"
        }
    }
}

extension ApprovalPages.DetailPage.Signature {
    fileprivate init(_ signature: ApprovalResult.Signature) {
        summary =
            "\(signature.isRejection ? "Rejected" : "Signed") by \(signature.by), \(signature.signedAt.shownTime)"
            + (signature.isRejection ? "" : ", good until \(signature.lapsesAt.shownTime)")
            + (signature.reason.map { ": \($0)" } ?? "")
        fault = signature.fault
    }
}
