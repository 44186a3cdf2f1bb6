import ArgumentParser
import FeedReader
import Foundation
import Model
import Store
import WebClient
import Daemon
import Sending
import Campaigns

struct FeedsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feeds", abstract: "Campaigns that the new items of an RSS or Atom feed start.",
        subcommands: [FeedsPollCommand.self, FeedsShowCommand.self])
}

struct FeedsPollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll", abstract: "Ask the feeds that are due once, send what is new, and exit.",
        discussion: """
            For a timer where no daemon runs. The first poll of a feed sends nothing: what stands in it is the back \
            catalogue. A run that was cut short goes on where it stood.
            """)

    @OptionGroup var settings: Settings

    @Argument(help: "Only these campaigns, due or not (default: every campaign with a feed that is due).")
    var campaigns: [String] = []

    @OptionGroup var log: LogOptions

    func run() async throws {
        let session = try settings.session()
        let webhooks = try await WebhookDispatcher.registered(session, logger: log.logger)
        let poller = FeedPoller(store: session.store, web: .feeds, actor: session.actor)
        var failures: [Failure] = []
        for source in try sources(session.configuration) {
            let name = source.campaign.name
            let now = Timestamp(Date())
            if campaigns.isEmpty, let next = try await poller.nextPoll(of: source.campaign, now: now), next > now {
                Console.note("\(name): due at \(next.iso8601)")
                continue
            }
            let poll = try await poller.poll(source.definition(plannedAt: now), now: now)
            Console.print(FeedPollText.text(poll, of: name))
            if let failure = FeedPollText.failure(poll, of: name) { failures.append(failure) }
            do {
                try await execute(try await poller.openRuns(of: source.campaign), session)
            } catch let failure as Failure {
                failures.append(failure)
            }
        }
        try await webhooks.drain(within: WebhookDispatcher.lastWait)
        if let first = failures.first { throw first.with(failures.dropFirst().flatMap(\.messages)) }
    }

    /// With a feed; a broken file among them is an error only for those who name it.
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

    private func execute(_ runs: [Run], _ session: Session) async throws {
        guard let first = runs.first else { return }
        let sending = try SendingHere(session, topic: first.definition.campaign.topic, log.logger)
        for run in runs {
            let end = try await sending.send(run)
            if case .busy = end { continue }
            Console.print(ReportText(report: try await ReportRun(store: session.store).report(run)).text)
            if let failure = end.failure(of: run) { throw failure }
        }
    }
}

struct FeedsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Fetch a campaign's feed and show what its items would give; nothing is sent.")

    @OptionGroup var settings: Settings

    @Argument(help: "The campaign's name, or the path of its file.", completion: .custom(CampaignNames.completions))
    var campaign: String

    @Option(help: "How many items.") var limit = 5

    func run() async throws {
        let session = try settings.session()
        let source = try CampaignSource.load(campaign, session.configuration)
        let feed = try source.requireFeed(campaign)
        let poller = FeedPoller(store: session.store, web: .feeds, actor: session.actor)
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
