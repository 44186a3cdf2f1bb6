import Campaigns
import Foundation
import HTTPTypes
import Hummingbird
import Model

/// The plans that people made: each is an object with an address, from which it is tested, signed and sent.
struct PlanPages: Sendable {
    private static let shown = 50

    let cases: UseCases

    var routes: [PageRoute] {
        PageRoute.readingTexts([
            .get("/plans", .read, list), .get("/plans/{plan}", .read, show),
            .post("/plans/{plan}/start", .run, start), .post("/plans/{plan}/ask", .ask, ask),
            .post("/plans/{plan}/values", .run, giveValues),
            .post("/plans/{plan}/test-send", .testSend, test), .get("/tests/{run}", .read, testPart),
        ])
    }

    @Sendable private func list(_ request: PageRequest) async throws -> Response {
        let caller = try request.caller
        let file = request.query("campaign")
        let before = request.query("before").flatMap { Int64($0) }
        let found = try await cases.plans.plans(file: file, before: before, limit: Self.shown)
        var rows: [PlanList.Row] = []
        for plan in found where caller.sees(plan.definition.campaign.topic) {
            rows.append(PlanList.Row(plan, try await cases.plans.step(of: plan, now: cases.now)))
        }
        let query = file.map { "campaign=\($0.inAddress)&" } ?? ""
        return try request.page(
            .plans, title: "Plans",
            PlanList(
                campaign: file, rows: rows, isEmpty: rows.isEmpty,
                older: found.count < Self.shown ? nil : found.last.map { "/plans?\(query)before=\($0.id)" }))
    }

    @Sendable private func show(_ request: PageRequest) async throws -> Response {
        try await answer(request, try await plan(request))
    }

    /// Sends the plan. The form's name for the send may differ from the plan's.
    @Sendable private func start(_ request: PageRequest) async throws -> Response {
        let plan = try await plan(request)
        let fields = try await request.form()
        do {
            guard let token = plan.token.flatMap(PlanToken.init) else {
                throw Failure(.invalidData, "a variable has no value; change the values, and plan again")
            }
            // The request names the plan's maker as an author, which a start does not know.
            if case .needsApproval = try await cases.plans.step(of: plan, now: cases.now) {
                throw Failure(.refused, "the plan needs approval; request it first")
            }
            let occurrence = fields["occurrence", default: ""].isEmpty ? plan.occurrence : fields["occurrence"]
            let guards = GuardName.allCases.filter { fields["guard.\($0.rawValue)"] != nil }
            let order = StartCampaign.Order(
                occurrence: occurrence ?? plan.occurrence, variables: plan.definition.variables, plan: token,
                overriding: Set(guards), refusesRepeats: true)
            let run = try await started(order, token, plan, by: try request.caller)
            try await cases.plans.setOccurrence(run.occurrence, of: plan)
            return PageRequest.seeOther("/runs/\(run.id)")
        } catch {
            return try await refused(error, request, plan)
        }
    }

    /// Starts the run. If a run with the same content has this name already, returns that run: the form was sent twice.
    private func started(
        _ order: StartCampaign.Order, _ token: PlanToken, _ plan: SavedPlan, by caller: Caller
    ) async throws -> Run {
        let run: Run
        do {
            let started = try await cases.started(plan.file, order, by: caller)
            if started.isNew { return started.run }
            run = started.run
        } catch let drift as PlanDrift {
            let known = try await cases.start.sent(plan.file, in: cases.files, occurrence: order.occurrence)
            guard let known, caller.sees(known.definition.campaign.topic) else { throw drift }
            run = known
        }
        let isOther = try token.differs(from: run)
        // The same name from the same plan means that the form was sent twice.
        if !isOther, order.occurrence == plan.occurrence { return run }
        throw Failure(
            .refused,
            "\(run.occurrence) has already been sent as run \(run.id)\(isOther ? ", with other texts" : ""); nothing was sent. "
                + "Give the send another name.")
    }

    /// Gives the start that the plan shows the plan's values.
    @Sendable private func giveValues(_ request: PageRequest) async throws -> Response {
        let plan = try await plan(request)
        do {
            guard plan.isScheduled else { throw Failure(.invalidData, "no schedule starts this plan") }
            let caller = try request.caller
            // The file may be of another app by now.
            try CampaignAccess(cases, caller).require(plan.file)
            _ = try await cases.values.give(
                plan.definition.variables, to: plan.occurrence, of: cases.files.source(plan.file),
                by: caller.actor, now: cases.now)
            return PageRequest.seeOther(plan.address)
        } catch {
            return try await refused(error, request, plan)
        }
    }

    @Sendable private func ask(_ request: PageRequest) async throws -> Response {
        let plan = try await plan(request)
        do {
            let note = try await request.form()["note"]
            try CampaignAccess(cases, request.caller).require(plan.file)
            try await cases.plans.ask(plan, note: note, in: cases.files, by: request.caller.actor, now: cases.now)
            return PageRequest.seeOther(plan.address)
        } catch {
            return try await refused(error, request, plan)
        }
    }

    /// Creates a test and leaves it to the daemon. The page shows its progress.
    @Sendable private func test(_ request: PageRequest) async throws -> Response {
        let plan = try await plan(request)
        let fields = try await request.form()
        let typed = fields["device", default: ""].trimmingCharacters(in: .whitespaces)
        let device = typed.isEmpty ? fields["to", default: ""] : typed
        do {
            let variant = fields["variant", default: ""]
            let run = try await cases.tested(
                plan.definition, device: device, variant: variant.isEmpty ? nil : variant, by: request.caller)
            return PageRequest.seeOther("\(plan.address)?device=\(device.inAddress)&test=\(run.id)#test")
        } catch {
            return try await refused(error, request, plan, device: device)
        }
    }

    /// Returns the state of a test alone, for the script.
    @Sendable private func testPart(_ request: PageRequest) async throws -> Response {
        let number = try request.number("run", of: "test")
        guard let test = try await cases.test(number, for: request.caller) else {
            throw Problem.notFound("no test \(number)")
        }
        return try request.part(.testState, test)
    }

    /// Throws "not found" for a plan of an app that the visitor may not see.
    private func plan(_ request: PageRequest) async throws -> SavedPlan {
        let number = try request.number("plan", of: "plan")
        guard let plan = try await cases.plans.plan(number),
            try request.caller.sees(plan.definition.campaign.topic)
        else { throw Problem.notFound("no plan \(number): plans are kept for 90 days") }
        return plan
    }

    /// Returns the page again, with the reason for the refusal.
    private func refused(
        _ error: any Error, _ request: PageRequest, _ plan: SavedPlan, device: String = ""
    ) async throws -> Response {
        let problem = try Problem.explained(error, for: request.caller)
        // A start without signatures has asked for them: the page says so.
        if KeepPlans.hasAsked(error) { return PageRequest.seeOther(plan.address) }
        var detail = problem.detail
        if let refusal = error as? GuardRefusal { detail = "\(refusal.facts). Tick its box to send anyway." }
        if let drift = error as? PlanDrift { detail = "Nothing was sent: \(drift.facts). Plan it again." }
        return try await answer(
            request, plan, problem: detail.messageLines, device: device,
            status: .init(code: problem.status))
    }

    private func answer(
        _ request: PageRequest, _ plan: SavedPlan, problem: [String] = [], device: String? = nil,
        status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let caller = try request.caller
        var step = try await cases.plans.step(of: plan, now: cases.now)
        switch step {
        case .sent, .incomplete, .scheduled: break
        default: if !cases.plans.isCurrent(plan, in: cases.files) { step = .outdated }
        }
        var page = try PlanPage(plan, step, for: caller)
        page.problem = problem
        if case .scheduled = step, try await cases.plans.differsFromSchedule(plan) {
            page.offerValues(of: plan, to: caller)
        }
        page.choose(device ?? request.query("device") ?? "", among: caller.topic == nil ? cases.testDeviceNames : [])
        if let test = request.query("test").flatMap({ Int64($0) }) {
            page.test = try await cases.test(test, for: caller)?.again(at: plan.address, request.queryFields)
        }
        return try request.page(.plan, title: "\(page.heading), \(plan.file)", page, status: status)
    }
}

extension SavedPlan {
    var address: String { "/plans/\(id)" }
}

extension UseCases {
    /// Returns the state of a test, or `nil` if there is no such test or the caller may not see it.
    func test(_ number: Int64, for caller: Caller) async throws -> TestState? {
        guard let run = try await runs.run(number), run.isTest, caller.sees(run.definition.campaign.topic) else {
            return nil
        }
        return TestState(run, try await tests.result(of: run))
    }
}

/// The state of a test that was sent to one device.
struct TestState: Sendable {
    var run: Int64
    var summary: String
    var mark: String
    var isWaiting: Bool
    /// The address that shows the state again. It differs from the present address, so that a browser follows it.
    /// `nil` if the state is final, or if a script asks.
    var again: String?
}

extension TestState {
    /// - Parameter result: the result of the test, or `nil` if it has none yet.
    init(_ test: Run, _ result: TestResult?) {
        run = test.id
        let who = result.map { " to \($0.installationId ?? $0.token)" } ?? ""
        let answer = [result?.status.map(String.init), result?.reason].compactMap(\.self).joined(separator: " ")
        let suppressed = result?.reason.flatMap(SuppressionReason.init).map { "not sent. \($0.explanation)" }
        let state = result?.state ?? "pending"
        isWaiting = state == "pending" && !test.state.isFinal
        summary =
            "test \(test.id)\(who): "
            + (isWaiting
                ? "waits for the daemon to send it" : suppressed ?? state + (answer.isEmpty ? "" : " (\(answer))"))
        mark = state
    }

    /// Returns the state with the address that shows it again.
    ///
    /// - Parameters:
    ///   - page: the path of the page.
    ///   - query: the present query of the page.
    func again(at page: String, _ query: [String: String]) -> TestState {
        guard isWaiting else { return self }
        var fields = query
        fields["look"] = String((fields["look"].flatMap { Int($0) } ?? 0) % 1000 + 1)
        var state = self
        let sorted = fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        state.again = "\(page)?\(PageRequest.query(sorted))"
        return state
    }
}
