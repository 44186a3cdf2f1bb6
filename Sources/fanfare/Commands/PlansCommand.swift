import ArgumentParser
import Campaigns
import Model
import Store

struct PlansCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plans", abstract: "List the plans that were kept, the newest first.",
        discussion:
            "`fanfare plan --save` and the web pages keep plans, for 90 days. `fanfare run --plan NUMBER` sends one."
    )

    private static let limitMax = 1000

    @OptionGroup var settings: Settings
    @Argument(help: "Only the plans of this campaign.", completion: .custom(CampaignNames.completions))
    var campaign: String?
    @Option(help: "The maximum number of plans, up to 1,000.") var limit = 20
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard 1...Self.limitMax ~= limit else { throw ValidationError("--limit must be from 1 to 1,000") }
    }

    func run() async throws {
        let session = try await settings.session(.reading)
        let plans = try await session.useCases.plans.results(file: campaign, limit: limit, now: session.now)
        if json { return Console.print(try ResultJSON.text(PlanListResult(plans: plans))) }
        guard !plans.isEmpty else { return Console.print("no plan was kept") }
        var page = Page()
        for plan in plans {
            page.row(
                "Plan \(plan.plan)",
                "\(plan.campaign), \(plan.state), \(plan.reach.devices), by \(plan.madeBy) at \(plan.madeAt)",
                plan.excerpt ?? "")
        }
        Console.print(page.text)
    }
}
