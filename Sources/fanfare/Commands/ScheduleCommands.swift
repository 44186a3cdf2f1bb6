import ArgumentParser
import Campaigns
import Daemon
import FeedReader
import Foundation
import Model
import Sending
import Store
import WebClient

struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "List the next automatic starts, or rehearse a day.",
        discussion: """
            Times are in this machine's zone (set TZ for another) and in UTC. Listed occurrences start automatically \
            while `fanfare serve` is running, or when a timer runs `fanfare run --due`. Due occurrences are listed \
            first: the daemon or the timer starts them. Runs that began and wait for a person, late or stopped by a breaker, \
            are named below.
            """)

    @OptionGroup var settings: Settings
    @Argument(help: "Only these campaigns.", completion: .custom(CampaignNames.completions)) var campaigns: [String] =
        []
    @Option(help: "The number of occurrences to list for each campaign.") var count = 1
    @Option(help: "List everything that starts on this day, such as 2026-12-24.") var on: String?
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard count > 0 else { throw ValidationError("--count must be at least 1") }
        if let on, on.utf8.count != 10 || WallTime(on) == nil {
            throw ValidationError("--on \(on): write a date such as 2026-12-24")
        }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        try CampaignSource.requireFolder(configuration.campaigns)
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        for problem in catalogue.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let schedule = ListSchedule(campaigns: catalogue.ready, zone: .current)
        var coming = try schedule.coming(
            campaigns, count: count, on: on.flatMap(WallTime.init), now: WallClock.system.now())
        if on == nil {
            (coming.halted, coming.due, coming.values) = try await stored(configuration, schedule, coming.now)
        } else {
            let session = try? await settings.session(configuration, .reading)
            coming.values = (try? await session?.useCases.startValues()) ?? StartValues()
        }
        Console.print(json ? try ResultJSON.text(coming.result) : ScheduleList(coming).text)
        if !catalogue.problems.isEmpty { throw ExitStatus.invalidData.exitCode }
    }
}

extension ScheduleCommand {
    /// Returns the runs that wait for a person, and the due occurrences. If the store cannot be read, warns, and
    /// returns the occurrences that are due by the files alone.
    private func stored(
        _ configuration: Configuration, _ schedule: ListSchedule, _ now: Timestamp
    ) async throws -> (halted: [Run], due: [Agenda.Due], values: StartValues) {
        do {
            let session = try await settings.session(configuration, .reading)
            let runs = try await session.runs.halted()
            let due = try await schedule.due(campaigns, in: session.store, now: now)
            let values = try await session.useCases.startValues()
            return (campaigns.isEmpty ? runs : runs.filter { campaigns.contains($0.campaign) }, due, values)
        } catch {
            let why = Failure(error)?.messages.joined(separator: "; ") ?? "\(error)"
            Console.note(
                "warning: runs that wait for a person and values of single starts are not shown, and due occurrences may already have a run: \(why)"
            )
            return ([], try schedule.due(campaigns, marks: [:], now: now), StartValues())
        }
    }
}

/// The schedule as text, in the operator's zone and in UTC, with the runs that wait for a person.
struct ScheduleList {
    private static let dueNote = " due now: the daemon or `run --due` starts it"

    private let entries: [Agenda.Due]
    private let due: [Agenda.Due]
    private let scheduled: Int
    private let halted: [Run]
    private let past: [String]
    private let values: StartValues
    private let zone: TimeZone

    init(_ coming: ListSchedule.Coming) {
        values = coming.values
        entries = coming.entries
        due = coming.due
        scheduled = coming.scheduled
        halted = coming.halted
        past = coming.past
        zone = coming.zone
    }

    var text: String {
        let over = past.isEmpty ? [] : ["", "past:"] + past.map { "  \($0)" }
        let lines = halted.map { "  run \($0.id): \($0.campaign), occurrence \($0.occurrence): \(RunStatus.state($0))" }
        let waiting = lines.isEmpty ? [] : ["", "waits for a person:"] + lines
        return ([table] + over + waiting).joined(separator: "\n")
    }

    private var table: String {
        let listed = due + entries
        guard !listed.isEmpty else {
            return scheduled == 0
                ? "no campaign has a schedule; give a campaign a `schedule` with cron or at"
                : "nothing will start: each scheduled start has its run, is over or is on another day"
        }
        let shown = zone.identifier
        let width = max(20, shown.count) + 2
        let names = max(10, listed.map { $0.campaign.campaign.name.count }.max() ?? 0) + 2
        let heading = shown.padded(to: width) + "UTC".padded(to: 22) + "campaign".padded(to: names) + "occurrence"
        let dueLines = due.map { line($0, width: width, names: names) + Self.dueNote }
        return ([heading] + dueLines + entries.map { line($0, width: width, names: names) }).joined(separator: "\n")
    }

    private func line(_ entry: Agenda.Due, width: Int, names: Int) -> String {
        let occurrence = entry.occurrence
        let note =
            occurrence.isByEachClock ? " by each device's clock, the last at \(occurrence.lastStartsAt.iso8601)" : ""
        let missing = entry.campaign.missingValues(at: occurrence, values)
        let given = values.values(of: entry.campaign.campaign, occurrence).keys.sorted()
        return zone.wall(at: occurrence.startsAt).description.padded(to: width)
            + occurrence.startsAt.iso8601.padded(to: 22) + entry.campaign.campaign.name.padded(to: names)
            + occurrence.key + note + (missing.isEmpty ? "" : "; " + MissingValues.summary(missing))
            + (given.isEmpty ? "" : "; its own \(given.joined(separator: ", "))")
    }

}

struct FeedsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feeds", abstract: "Campaigns started by new items of an RSS or Atom feed.",
        subcommands: [FeedsPollCommand.self, FeedsShowCommand.self])
}

struct FeedsPollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll", abstract: "Poll the due feeds once, send the new items, and exit.",
        discussion: """
            Use this in a timer if no daemon runs. The first poll of a feed sends nothing, as its items are the back \
            catalogue. An interrupted run continues where it stopped.
            """)

    @OptionGroup var settings: Settings

    @Argument(help: "Only these campaigns, due or not (default: every campaign with a feed that is due).")
    var campaigns: [String] = []

    @OptionGroup var log: LogOptions

    func run() async throws {
        let session = try await settings.session()
        let sending = try await CommandSender.reporting(session, log)
        let poller = FeedPoller(
            store: session.store, web: .feeds(session.configuration), actor: session.actor,
            approvals: { session.configuration.approvals },
            brake: { session.configuration.volumeBrake })
        var failures: [Failure] = []
        for source in try sources(session.configuration) {
            do {
                if let failure = try await poll(source, poller, session, sending) { failures.append(failure) }
            } catch {
                // A failure of one campaign must not stop the polls of other feeds.
                guard let failure = Failure.of(error) else { throw error }
                failures.append(failure)
            }
        }
        try await sending.deliverWebhooks()
        if let first = failures.first { throw first.with(failures.dropFirst().flatMap(\.messages)) }
    }

    /// Polls one feed if it is due, and sends its open runs. Returns the failure of the feed, or `nil` for none.
    private func poll(
        _ source: CampaignSource, _ poller: FeedPoller, _ session: Session, _ sending: CommandSender
    ) async throws -> Failure? {
        let name = source.campaign.name
        let now = session.clock.now()
        if campaigns.isEmpty, let next = try await poller.nextPoll(of: source.campaign, now: now), next > now {
            Console.note("\(name): due at \(next.iso8601)")
            return nil
        }
        let poll = try await poller.poll(source.definition(plannedAt: now), now: now)
        Console.print(FeedPollText.text(poll, of: name))
        let failure = FeedPollText.failure(poll, of: name)
        do {
            try await execute(try await poller.openRuns(of: source.campaign, now: now), session, sending)
        } catch let error as Failure {
            throw failure.map { $0.with(error.messages) } ?? error
        }
        return failure
    }

    /// Returns the campaigns with a feed. A broken file is an error only if the command names it.
    private func sources(_ configuration: Configuration) throws -> [CampaignSource] {
        guard campaigns.isEmpty else {
            return try campaigns.map { name in
                let source = try CampaignSource.load(name, configuration)
                _ = try source.requireFeed(name)
                return source
            }
        }
        let (sources, broken) = CampaignSource.withFeeds(in: configuration)
        for path in broken {
            Console.note("warning: \(path) has errors and is left out; `fanfare validate` shows them")
        }
        return sources
    }

    private func execute(_ runs: [Run], _ session: Session, _ sending: CommandSender) async throws {
        for run in runs {
            let end = try await sending.send(run)
            if case .busy = end { continue }
            Console.print(ReportText(report: try await session.useCases.reports.report(run)).text)
            if let failure = end.failure(of: run, session.runs) { throw failure }
        }
    }
}

struct FeedsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Fetch a campaign's feed and show the variables of its items; nothing is sent.")

    @OptionGroup var settings: Settings

    @Argument(help: "The campaign's name, or the path of its file.", completion: .custom(CampaignNames.completions))
    var campaign: String

    @Option(help: "The number of items to show.") var limit = 5

    func run() async throws {
        let configuration = try settings.configuration()
        let source = try CampaignSource.load(campaign, configuration)
        let feed = try source.requireFeed(campaign)
        let session = try await settings.session(configuration, .reading)
        let poller = FeedPoller(store: session.store, web: .feeds(session.configuration), actor: session.actor)
        let state = try await poller.state(of: source.campaign)
        let last = state.map { "last polled \($0.polledAt.iso8601)\($0.problem.map { ": \($0)" } ?? "")" }
        Console.print(
            "\(ShownURL.text(feed.url)), every \(WrittenDuration.text(feed.every)), \(last ?? "never polled")")
        for item in try await poller.preview(source.campaign, limit: limit) {
            let values = item.variables.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
            let seen = item.isSeen ? "seen" : state?.isRead == true ? "new" : "back catalogue"
            let published = item.item.published.map { " of \($0.iso8601)" } ?? ""
            Console.print("\n\(item.occurrence) (\(seen))\(published)\n" + values.joined(separator: "\n"))
        }
    }
}

/// The result of a poll, one line per item.
enum FeedPollText {
    static func text(_ poll: FeedPoll, of campaign: String) -> String {
        let runs = poll.runs.flatMap { run in
            ["\(campaign): \(run.occurrence) is new, run \(run.id)"]
                + run.definition.lintOfValues().map { "\(campaign): warning: \(run.occurrence): \($0)" }
        }
        let ended = poll.ended.map { ended in
            switch ended {
            case .missed(let occurrence, let reason): "\(campaign): \(occurrence) is missed: \(reason)"
            case .refused(let occurrence, let reason): "\(campaign): \(occurrence) is refused: \(reason)"
            }
        }
        let archived =
            poll.archived > 0
            ? ["\(campaign): \(poll.archived.counted("new item")) not sent: published longer ago than late_by_max"] : []
        return (["\(campaign): \(summary(poll))"] + runs + ended + archived).joined(separator: "\n")
    }

    /// Returns the failure that a poll's result means for the exit code, or `nil` for none.
    static func failure(_ poll: FeedPoll, of campaign: String) -> Failure? {
        switch poll.found {
        case .failed(let reason): return Failure(.tryAgain, "\(campaign): \(reason)")
        case .tooManyNew: return Failure(.refused, "\(campaign): \(summary(poll))")
        case .unchanged, .catalogue, .items, .overtaken: break
        }
        let refused = poll.ended.contains { if case .refused = $0 { true } else { false } }
        return refused ? Failure(.refused, "\(campaign): not sent, see above") : nil
    }

    private static func summary(_ poll: FeedPoll) -> String {
        switch poll.found {
        case .unchanged: "nothing has changed"
        case .catalogue(let items):
            "polled for the first time; its \(items.counted("item is", "items are")) treated as old and not sent"
        case .items(let count):
            "\(count.counted("item")), \((poll.runs.count + poll.ended.count + poll.archived).grouped) new"
        case .tooManyNew(let count, let max):
            "\(count.counted("item is", "items are")) new in one poll, above max_new (\(max)); none is sent: to send "
                + "one, use `fanfare run`"
        case .failed(let reason): reason
        case .overtaken: "another process has just polled this feed"
        }
    }
}
