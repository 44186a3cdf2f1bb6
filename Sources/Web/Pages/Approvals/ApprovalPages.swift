import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// The plans that wait for signatures, and those that are decided.
struct ApprovalPages: Sendable {
    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/approvals", .read, list), .get("/approvals/{plan}", .read, detail),
            .post("/approvals/{plan}/approve", .approve) { try await sign($0, isRejection: false) },
            .post("/approvals/{plan}/reject", .approve) { try await sign($0, isRejection: true) },
            .post("/approvals/{plan}/ask", .ask, ask), .post("/approvals/{plan}/withdraw", .ask, withdraw),
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
            return ApprovalList.Row(plan, mayAsk: isNewest && caller.role.may(.ask))
        }
        let stages = try await cases.runs.waitingStages(sees: caller.sees).map(ApprovalList.Stage.init)
        return try request.page(
            .approvals, title: "Approvals",
            ApprovalList(
                open: rows.filter(\.isOpen), decided: rows.filter { !$0.isOpen }, stages: stages,
                problem: problem?.detail),
            status: .init(code: problem?.status ?? 200))
    }

    /// Requests approval of a rejected plan again.
    @Sendable private func ask(_ request: PageRequest) async throws -> Response {
        do {
            let asked = try await cases.askAgain(request.path("plan"), by: request.caller)
            return PageRequest.seeOther("/approvals/\(asked.digest)")
        } catch {
            let problem = try Problem.refusal(error, for: request.caller)
            return try await page(request, problem: problem)
        }
    }

    @Sendable private func detail(_ request: PageRequest) async throws -> Response {
        try await page(request, try await cases.approval(request.path("plan"), for: request.caller))
    }

    private func sign(_ request: PageRequest, isRejection: Bool) async throws -> Response {
        let form = try await request.form()
        let reason = form["reason"].flatMap { $0.isEmpty ? nil : $0 }
        return try await decided(request) { plan, caller in
            isRejection
                ? try await cases.reject(plan, reason: reason, by: caller)
                : try await cases.approve(plan, shown: form["plan"], reason: reason, by: caller)
        }
    }

    @Sendable private func withdraw(_ request: PageRequest) async throws -> Response {
        try await decided(request, cases.withdraw)
    }

    /// Decides on a plan, and leads to its page. Shows the page with the reason if the decision is refused.
    private func decided(
        _ request: PageRequest, _ decide: (_ plan: String, _ caller: Caller) async throws -> ApprovalResult
    ) async throws -> Response {
        let plan = request.path("plan")
        do {
            let decided = try await decide(plan, try request.caller)
            return PageRequest.seeOther("/approvals/\(decided.isOpen ? decided.digest : "\(decided.number)")")
        } catch {
            let problem = Problem(error)
            guard problem.status < 500 || problem.status == 503 else { throw error }
            let detail = try await cases.approval(plan, for: request.caller)
            return try await page(request, detail, problem: problem.detail, status: .init(code: problem.status))
        }
    }

    private func page(
        _ request: PageRequest, _ detail: ApprovePlans.Detail, problem: String? = nil,
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let caller = try request.caller
        var page = try ApprovalPage(detail, try await source(detail, for: caller), for: caller)
        page.problem = problem
        return try request.page(.approval, title: page.plan.name, page, status: status)
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
