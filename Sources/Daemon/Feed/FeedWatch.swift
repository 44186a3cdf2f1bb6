import Logging
import Model
import Store
import Sending
import Campaigns

/// Polls the feeds of the campaigns, each at its own pace. The runs of new items are found in the store like all others.
struct FeedWatch: Sendable {
    private static let pollsAtOnce = 4

    let poller: FeedPoller
    let tracker: DaemonStatusTracker
    let clock: WallClock
    /// At most this long without a look at the wall clock, which may be set.
    let sleepMax: Duration
    let logger: Logger

    /// Until the task is cancelled; a store that is busy is tried again.
    func run() async {
        while !Task.isCancelled {
            let seen = tracker.changed.version
            var wait = sleepMax
            do {
                try await pollDue()
                for feed in tracker.feeds { wait = min(wait, try await pause(before: feed)) }
            } catch is CancellationError {
            } catch {
                logger.error("feeds wait", metadata: .facts([.error: "\(error)"]))
                wait = min(wait, .seconds(1))
            }
            if wait > .zero { await tracker.changed.wait(after: seen, atMost: wait, clock: clock) }
        }
    }

    /// Asks every feed that is due, once.
    func pollDue() async throws {
        var due: [ReadyCampaign] = []
        for feed in tracker.feeds where try await pause(before: feed) <= .zero { due.append(feed) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, feed) in due.enumerated() {
                if number >= Self.pollsAtOnce { try await group.next() }
                group.addTask { try await poll(feed) }
            }
            try await group.waitForAll()
        }
    }

    private func pause(before feed: ReadyCampaign) async throws -> Duration {
        let now = clock.now()
        return (try await poller.nextPoll(of: feed.campaign, now: now) ?? now + sleepMax) - now
    }

    private func poll(_ feed: ReadyCampaign) async throws {
        let now = clock.now()
        let poll = try await poller.poll(feed.definition(plannedAt: now), now: now)
        var metadata: Logger.Metadata = .facts([.campaign: "\(feed.campaign.name)"])
        for run in poll.runs {
            metadata[.occurrence] = "\(run.occurrence)"
            metadata[.run] = "\(run.id)"
            logger.notice("run of a new item", metadata: metadata)
            for finding in run.definition.lintOfValues() {
                metadata[.reason] = "\(finding)"
                logger.warning("the text of a new item is perhaps a mistake", metadata: metadata)
            }
            metadata[.reason] = nil
        }
        metadata[.run] = nil
        for ended in poll.ended {
            metadata[.occurrence] = "\(ended.occurrence)"
            metadata[.reason] = "\(ended.reason)"
            logger.warning("item not sent", metadata: metadata)
        }
        metadata[.occurrence] = nil
        switch poll.found {
        case .failed(let reason):
            metadata[.reason] = "\(reason)"
            logger.warning("feed not read; asked again later", metadata: metadata)
        case .tooManyNew(let count, let max):
            metadata[.reason] = "\(count) items are new at once, max_new is \(max)"
            logger.error("new items held back", metadata: metadata)
        case .catalogue(let items):
            metadata[.items] = "\(items)"
            logger.notice("feed read for the first time; its items are the back catalogue", metadata: metadata)
        case .unchanged, .items, .overtaken: break
        }
    }
}
