import Campaigns
import Foundation
import Hummingbird
import Model

/// The operation that lists what starts automatically, and when.
struct ScheduleOperations: Sendable {
    let cases: UseCases

    var all: [Operation] {
        [
            Operation(
                method: .get, path: "/schedule", id: "getSchedule", subject: "Campaigns",
                about:
                    "The automatic starts from one day to another, at most \(ListSchedule.daysMax): days of the "
                    + "operator's zone, or of each device's clock if the schedule uses it. Clock changes that skip or "
                    + "repeat a start are named.",
                permission: .read,
                parameters: [
                    .query("from", "The first day, such as 2026-12-01 (default: today)."),
                    .query("to", "The last day, inclusive (default: two weeks after the first)."),
                    .query("campaign", "Only this campaign."),
                ], answers: [.init(.ok, "The starts, in order of time.", .json(ScheduleResult.self))],
                problems: [.notFound, .unprocessableContent], handle: get)
        ].readingTexts
    }

    @Sendable private func get(_ request: APIRequest) async throws -> Response {
        let today = cases.zone.wall(at: cases.now).day
        let first = try request.day("from") ?? today
        let last = try request.day("to") ?? CivilDay(number: first.number + 13)
        if let name = request.text("campaign") { try CampaignAccess(cases, request.caller).require(name) }
        return try .json(
            try await cases.coming(
                request.text("campaign").map { [$0] } ?? [], from: first, through: last, sees: request.caller.sees))
    }
}

extension UseCases {
    /// Returns what starts automatically between two days, and the runs that wait for a person's decision.
    ///
    /// - Parameters:
    ///   - zone: the zone of the days; `nil` for the operator's.
    ///   - sees: returns whether the caller may see the app with this topic.
    func coming(
        _ names: [String], from first: CivilDay, through last: CivilDay, in zone: TimeZone? = nil,
        sees: (_ topic: String) -> Bool
    ) async throws -> ScheduleResult {
        var coming = try schedule(in: zone, sees: sees).coming.coming(names, from: first, through: last, now: now)
        coming.halted = try await runs.halted().filter { sees($0.definition.campaign.topic) }
        coming.values = try await startValues()
        return coming.result
    }
}

extension APIRequest {
    /// Returns a date in the address, or `nil` if it is absent.
    fileprivate func day(_ name: String) throws -> CivilDay? {
        guard let text = text(name) else { return nil }
        guard let wall = WallTime(text), text.utf8.count == 10 else {
            throw Problem.invalid(parameter: name, "\"\(name)\" must be a date such as 2026-12-24")
        }
        return wall.day
    }
}
