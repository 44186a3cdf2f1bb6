import Campaigns
import Hummingbird
import Model

/// The operations that stop everything, a campaign or a run, and that lift a stop. `resume` ends the stop of a single
/// run.
struct StopOperations: Sendable {
    /// The reason, for the audit log.
    struct Stop: Codable, Sendable {
        var reason: String?
    }

    struct Lift: Codable, Sendable {
        /// The reason, for the audit log. It is required.
        var reason: String
    }

    let cases: UseCases

    private static let run = Operation.Parameter.path("run", "The number of a run.", .integer)
    private static let campaign = Operation.Parameter.path("campaign", "The name of a campaign.")
    private static let stopAnswers = [
        Operation.Answer(
            .ok, "The stop in force, which may be an earlier one, and the number of requests started after it.",
            .json(StopResult.self))
    ]
    private static let liftAnswers = [
        Operation.Answer(.ok, "The stop that was lifted, and the stops still in force.", .json(LiftResult.self))
    ]

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/stops", id: "listStops", subject: "Stops",
                about: "The stops in force, in the store or only in the stop file, oldest first.", permission: .read,
                answers: [.init(.ok, "The stops in force.", .json(StopsResult.self))], handle: list),
            Operation(
                method: .post, path: "/stops", id: "stopEverything", subject: "Stops",
                about:
                    "Stops sending immediately, as `fanfare stop --all` does. Responds when all senders have "
                    + "confirmed, or after 15 s, even while the store accepts no writes.",
                permission: .halt, body: .json(Stop.self), needsBody: false, answers: Self.stopAnswers
            ) { try await stop(.all, $0) },
            Operation(
                method: .post, path: "/campaigns/{campaign}/stop", id: "stopCampaign", subject: "Stops",
                about: "Stops all runs of a campaign immediately, future ones included.", permission: .halt,
                parameters: [Self.campaign], body: .json(Stop.self), needsBody: false, answers: Self.stopAnswers,
                problems: [.notFound]
            ) { try await stop(.campaign($0.path("campaign")), $0) }.readingTexts,
            Operation(
                method: .post, path: "/runs/{run}/stop", id: "stopRun", subject: "Stops",
                about: "Stops one run immediately; it then waits for `resume`.", permission: .halt,
                parameters: [Self.run], body: .json(Stop.self), needsBody: false, answers: Self.stopAnswers,
                problems: [.notFound]
            ) { try await stop(.run(try $0.number("run", of: "run")), $0) },
            Operation(
                method: .post, path: "/stops/lift", id: "liftStop", subject: "Stops",
                about: "Lifts the global stop; runs continue where they were.", permission: .lift,
                body: .json(Lift.self), answers: Self.liftAnswers
            ) { try await lift(.all, $0) },
            Operation(
                method: .post, path: "/campaigns/{campaign}/stop/lift", id: "liftStopOfCampaign", subject: "Stops",
                about: "Lifts the stop of a campaign; its runs continue where they were.", permission: .lift,
                parameters: [Self.campaign], body: .json(Lift.self), answers: Self.liftAnswers, problems: [.notFound]
            ) { try await lift(.campaign($0.path("campaign")), $0) }.readingTexts,
        ]
    }

    @Sendable private func list(_ request: APIRequest) async throws -> Response {
        try .json(StopsResult(await cases.stops(seenBy: request.caller)))
    }

    private func stop(_ scope: StopOrder.Scope, _ request: APIRequest) async throws -> Response {
        let body = try await request.optionalBody(Stop.self)
        return try .json(try await cases.stop(scope, reason: body?.reason, by: request.caller, waits: true))
    }

    private func lift(_ scope: StopOrder.Scope, _ request: APIRequest) async throws -> Response {
        let body = try await request.body(Lift.self)
        return try .json(try await cases.lift(scope, reason: body.reason, by: request.caller))
    }
}

extension UseCases {
    /// Returns the stops in force that the caller may see.
    func stops(seenBy caller: Caller) async -> [StopInForce] {
        let found = await stopping.inForce()
        guard caller.topic != nil else { return found }
        var seen: [StopInForce] = []
        for var stop in found where await sees(stop.order.scope, caller) {
            var runs: [StoppedRunResult] = []
            for run in stop.runs where await sees(.run(run.run), caller) { runs.append(run) }
            stop.runs = runs
            seen.append(stop)
        }
        return seen
    }

    /// Stops the sending of a scope.
    ///
    /// - Parameter waits: whether to wait, for at most 15 s, until every sender has confirmed the stop.
    func stop(_ scope: StopOrder.Scope, reason: String?, by caller: Caller, waits: Bool) async throws -> StopResult {
        try await require(scope, caller)
        let reason = reason.flatMap { $0.contains { !$0.isWhitespace } ? $0 : nil }
        let order = StopOrder(named(scope), by: caller.actor.name, at: now, reason: reason)
        return try await stopping.execute(order, by: caller.actor, waits: waits)
    }

    func lift(_ scope: StopOrder.Scope, reason: String, by caller: Caller) async throws -> LiftResult {
        try await require(scope, caller)
        guard reason.contains(where: { !$0.isWhitespace }) else {
            throw Problem.invalid([
                .init(pointer: "/reason", detail: "give a reason for lifting the stop: it is recorded in the audit log")
            ])
        }
        var result = try await stopping.lift(named(scope), reason: reason, by: caller.actor)
        let still = result.still
        result.still = []
        for stop in still where await sees(StopOrder.Scope(stop.scope) ?? .all, caller) { result.still.append(stop) }
        return result
    }

    /// Returns the scope with the name that the campaign's runs have. The caller may give the name of the campaign's
    /// file instead, which may differ.
    private func named(_ scope: StopOrder.Scope) -> StopOrder.Scope {
        guard case .campaign(let name) = scope else { return scope }
        return .campaign(runName(ofCampaign: name))
    }

    private func sees(_ scope: StopOrder.Scope, _ caller: Caller) async -> Bool {
        if scope == .all { return true }
        return (try? await require(scope, caller)) != nil
    }

    /// Throws "not found" if the scope belongs to another app. Only a caller for all apps may stop everything.
    private func require(_ scope: StopOrder.Scope, _ caller: Caller) async throws {
        switch scope {
        case .all: try caller.requireAllApps(for: "stops of everything")
        case .run(let run):
            do {
                _ = try await self.run(run, for: caller)
            } catch  where caller.topic == nil && Problem(error).status == 503 {
                // The store is unavailable. A caller for all apps may stop any run, so the run need not be read.
            }
        case .occurrence(let campaign, let occurrence):
            let run = try await run("\(campaign)/\(occurrence)")
            _ = try await self.run(run.id, for: caller)
        case .campaign(let name):
            do {
                try CampaignAccess(self, caller).require(name)
            } catch {
                // The file may no longer exist while the campaign's runs continue.
                guard let run = try? await run(name), run.campaign == name, caller.sees(run.definition.campaign.topic)
                else { throw error }
            }
        }
    }
}
