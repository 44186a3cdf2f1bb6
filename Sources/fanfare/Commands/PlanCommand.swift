import ArgumentParser
import Foundation
import Model
import Campaigns

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan", abstract: "Show who would get what, without sending anything.",
        discussion: """
            The hash at the end names this plan: `run --plan HASH` sends it, or says what has changed since and sends \
            nothing. Exit code 3 when a guard of the campaign would refuse the run.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Option(help: "An occurrence of the campaign's schedule, such as 2026-12-01T09:00.") var occurrence: String?
    @Flag(help: "Plan a run that is started now, whatever the schedule says.") var now = false
    @Flag(help: "Show a sample payload of every text, not only of the first.") var samples = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        let time = Timestamp(Date())
        let given = try arguments.definition(configuration, plannedAt: time)
        let (definition, unset) = try planned(given, time).filledForShow()
        let budget = configuration.silentBudget(for: definition.campaign.topic)
        let plan = try await Planner(store: try settings.store(configuration), budget: budget)
            .plan(definition, now: time)
        let text = PlanText(plan: plan, unset: unset, showsAllSamples: samples)
        Console.print(json ? try JSONOutput.text(PlanJSON(plan, unset: unset)) : text.text)
        if !plan.refusals.isEmpty { throw ExitStatus.refused.exitCode }
    }

    private func planned(_ definition: RunDefinition, _ time: Timestamp) throws -> RunDefinition {
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
        guard !now, let next = timetable?.next(after: time) else { return definition }
        return definition.planned(for: next)
    }
}
