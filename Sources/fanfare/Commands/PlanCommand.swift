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
        let definition = try arguments.definition(configuration, plannedAt: Timestamp(Date()))
        let session = try Session(configuration)
        let planned = try await PlanCampaign(
            store: session.store, budget: configuration.silentBudget(for: definition.campaign.topic)
        ).plan(definition, occurrence: occurrence, isNow: now, now: session.now)
        let text = PlanText(plan: planned.plan, unset: planned.unset, showsAllSamples: samples)
        Console.print(json ? try JSONOutput.text(planned.result) : text.text)
        if !planned.plan.refusals.isEmpty { throw ExitStatus.refused.exitCode }
    }
}
