import ArgumentParser
import FeedReader
import Foundation
import Model
import Store
import WebClient
import Daemon
import Sending

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
        let configuration = try settings.configuration()
        let store = try settings.store(configuration)
        let courier = try await WebhookDispatcher.registered(configuration, store, logger: log.logger)
        let poller = FeedPoller(store: store, web: .feeds, actor: ThisProcess.actor)
        var failures: [Failure] = []
        for source in try sources(configuration) {
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
                try await execute(name, store, configuration)
            } catch let failure as Failure {
                failures.append(failure)
            }
        }
        try await courier.drain(within: WebhookDispatcher.lastWait)
        if let first = failures.first { throw first.with(failures.dropFirst().flatMap(\.messages)) }
    }

    /// With a feed; a broken file among them is an error only for those who name it.
    private func sources(_ configuration: Configuration) throws -> [CheckedCampaign] {
        guard campaigns.isEmpty else {
            return try campaigns.map { name in
                let source = try CheckedCampaign.load(name, configuration)
                guard source.campaign.feed != nil else {
                    throw Failure(.invalidData, "campaign \(name) has no feed; give it a `trigger` with one")
                }
                return source
            }
        }
        return YAMLFolder.files(in: configuration.campaigns).compactMap { path in
            do {
                let source = try CheckedCampaign.load(path, configuration)
                return source.campaign.feed == nil ? nil : source
            } catch {
                Console.note("warning: \(path) has errors and is left out; `fanfare validate` shows them")
                return nil
            }
        }
    }

    private func execute(_ campaign: String, _ store: any AllRoles, _ configuration: Configuration) async throws {
        let runs = try await store.openFeedRuns(campaign: campaign)
        guard let first = runs.first else { return }
        let logger = log.logger
        let sender = try Pipeline.Sender(try configuration.app(for: first.definition.campaign.topic), logger: logger)
        for run in runs {
            let end = try await Broadcast(store: store, sender: sender, logger: logger).execute(run)
            if case .busy = end { continue }
            Console.print(ReportText(report: try await store.report(run.id)).text)
            try RunCommand.leave(run, after: end)
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
        let configuration = try settings.configuration()
        let source = try CheckedCampaign.load(campaign, configuration)
        guard let feed = source.campaign.feed else {
            throw Failure(.invalidData, "campaign \(campaign) has no feed; give it a `trigger` with one")
        }
        let store = try settings.store(configuration)
        let poller = FeedPoller(store: store, web: .feeds, actor: ThisProcess.actor)
        let state = try await store.feedState(campaign: source.campaign.name)
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

extension CheckedCampaign {
    func definition(plannedAt: Timestamp) -> RunDefinition {
        RunDefinition(
            campaign: campaign, template: template, variantTemplates: variantTemplates,
            variables: campaign.variables, plannedAt: plannedAt)
    }
}
