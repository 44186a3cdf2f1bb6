import ArgumentParser
import Engine
import Foundation
import Model

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan", abstract: "Show who would get what, without sending anything.")

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Flag(help: "Print the result as JSON.") var json = false

    func run() async throws {
        let configuration = try settings.configuration()
        let now = Timestamp(Date())
        let (definition, unset) = try arguments.definition(configuration, plannedAt: now).filledForShow()
        let plan = try await Planner(store: try settings.store(configuration)).plan(definition, now: now)
        Console.print(
            json ? try JSONOutput.text(PlanJSON(plan, unset: unset)) : PlanText(plan: plan, unset: unset).text)
        if !plan.refusals.isEmpty { throw ExitStatus.refused.exitCode }
    }
}
