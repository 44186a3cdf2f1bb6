import ArgumentParser
import Foundation
import Model
import Campaigns

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
        var catalog = CampaignCatalog()
        catalog.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalog.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let now = Timestamp(Date())
        let list = ScheduleList(
            entries: try chosen(catalog.ready).flatMap { entries($0, now) }, zone: .current, now: now)
        Console.print(json ? try JSONOutput.text(list.json) : list.text)
        if !catalog.problems.isEmpty { throw ExitStatus.invalidData.exitCode }
    }

    private func chosen(_ ready: [ReadyCampaign]) throws -> [ReadyCampaign] {
        guard !campaigns.isEmpty else { return ready }
        return try campaigns.map { name in
            if let found = ready.first(where: { $0.campaign.name == name }) { return found }
            let suggestion = Suggestion.nearest(to: name, among: ready.map(\.campaign.name))
            throw Failure(
                .notFound, "no campaign \"\(name)\"" + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
        }
    }

    private func entries(_ ready: ReadyCampaign, _ now: Timestamp) -> [Agenda.Due] {
        guard let timetable = ready.timetable else { return [] }
        let found =
            on.flatMap(WallTime.init).map { Self.occurrences(of: timetable, on: $0) }
            ?? timetable.occurrences(after: now, through: nil, atMost: count)
        return found.map { Agenda.Due(campaign: ready, occurrence: $0) }
    }

    /// By each device's clock, it is the day on that clock that counts.
    private static func occurrences(of timetable: Timetable, on midnight: WallTime) -> [Occurrence] {
        let next = WallTime(seconds: midnight.seconds + 86_400)
        let isByEachClock = timetable.zone == .recipient
        let zone = isByEachClock ? TimeZone.gmt : TimeZone.current
        let shift = isByEachClock ? Timetable.firstOffset : .zero
        let (start, end) = (zone.moment(of: midnight) - shift, zone.moment(of: next) - shift)
        return timetable.occurrences(after: start - .milliseconds(1), through: end - .milliseconds(1))
    }
}
