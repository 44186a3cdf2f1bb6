package import Model
package import Store

/// Plans a campaign for a person: the next occurrence, or the one asked for, with names in place of values not set yet.
package struct PlanCampaign: Sendable {
    package struct Planned: Sendable {
        package var plan: Plan
        /// Variables without a value.
        package var unset: [String]

        package var result: PlanResult { PlanResult(plan, unset: unset) }
    }

    private let planner: Planner

    /// - Parameter budget: the app's, to say what it would hold back of a background push.
    package init(store: any RunLog & DeviceRegistry & OutcomeReader, budget: Configuration.SilentBudget?) {
        planner = Planner(store: store, budget: budget)
    }

    /// - Parameters:
    ///   - occurrence: of the campaign's schedule; nil: the next one.
    ///   - isNow: as if started now, whatever the schedule says.
    package func plan(
        _ definition: RunDefinition, occurrence: String?, isNow: Bool, now: Timestamp
    ) async throws -> Planned {
        let (shown, unset) = try Self.planned(definition, occurrence, isNow, now).filledForShow()
        return Planned(plan: try await planner.plan(shown, now: now), unset: unset)
    }

    private static func planned(
        _ definition: RunDefinition, _ occurrence: String?, _ isNow: Bool, _ now: Timestamp
    ) throws -> RunDefinition {
        let timetable = definition.campaign.schedule.flatMap(Timetable.init)
        if let occurrence {
            guard let found = timetable?.occurrence(named: occurrence) else {
                throw Failure(
                    .notFound,
                    "the schedule of \(definition.campaign.name) has no occurrence \(occurrence); `fanfare schedule` lists "
                        + "what comes next")
            }
            return definition.planned(for: found)
        }
        guard !isNow, let next = timetable?.next(after: now) else { return definition }
        return definition.planned(for: next)
    }
}
