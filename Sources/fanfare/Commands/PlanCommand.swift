import ArgumentParser
import Engine
import Foundation
import Model

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan", abstract: "Show who would get what, without sending anything.",
        discussion: """
            The hash at the end names this plan: `run --plan HASH` sends it, or says what has changed since and sends \
            nothing. Exit code 3 when a guard of the campaign would refuse the run.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Flag(help: "Show a sample payload of every text, not only of the first.") var samples = false
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        let now = Timestamp(Date())
        let (definition, unset) = try arguments.definition(configuration, plannedAt: now).filledForShow()
        let budget = configuration.silentBudget(for: definition.campaign.topic)
        let plan = try await Planner(store: try settings.store(configuration), budget: budget)
            .plan(definition, now: now)
        let text = PlanText(plan: plan, unset: unset, showsAllSamples: samples)
        Console.print(json ? try JSONOutput.text(PlanJSON(plan, unset: unset)) : text.text)
        if !plan.refusals.isEmpty { throw ExitStatus.refused.exitCode }
    }
}
