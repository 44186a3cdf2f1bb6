import ArgumentParser
import Campaigns
import Foundation
import Model

struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "List what starts by itself next, or rehearse a day.",
        discussion: """
            Times are those of this machine's zone (set TZ for another) and of UTC. What is listed starts by itself while \
            `fanfare serve` is running, or when a timer runs `fanfare run --due`.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "Only these campaigns.", completion: .custom(CampaignNames.completions)) var campaigns: [String] =
        []
    @Option(help: "How many occurrences of each campaign.") var count = 1
    @Option(help: "Everything that starts on this day, such as 2026-12-24.") var on: String?
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard count > 0 else { throw ValidationError("--count: at least 1") }
        if let on, on.utf8.count != 10 || WallTime(on) == nil {
            throw ValidationError("--on \(on): write a date such as 2026-12-24")
        }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        var catalogue = CampaignCatalogue()
        catalogue.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalogue.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let coming = try ListSchedule(campaigns: catalogue.ready, zone: .current)
            .coming(campaigns, count: count, on: on.flatMap(WallTime.init), now: Timestamp(Date()))
        Console.print(json ? try JSONOutput.text(coming.result) : ScheduleList(coming).text)
        if !catalogue.problems.isEmpty { throw ExitStatus.invalidData.exitCode }
    }
}
