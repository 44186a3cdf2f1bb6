import Campaigns
import Logging
import Model
import Platform
import Sending
import Store
import Synchronization

/// Polls the feeds of the campaigns, each at its own interval. The daemon finds the runs of new items in the store,
/// like all other runs.
struct FeedWatch: Sendable {
    /// The number of feeds that ``pollDue()`` reads at once.
    private static let pollsAtOnce = 4

    let poller: FeedPoller
    let tracker: DaemonStatusTracker
    let clock: WallClock
    let time: ConfirmedClock
    /// The maximum time between two reads of the wall clock, because the clock may be set meanwhile.
    let sleepMax: Duration
    let logger: Logger
    /// See ``DueRuns/countLimit``.
    let countLimit: Duration
    private let rests = FeedRests()
    private let inHand = FeedsInHand()

    init(
        poller: FeedPoller, tracker: DaemonStatusTracker, clock: WallClock, time: ConfirmedClock, sleepMax: Duration,
        countLimit: Duration = DueRuns.countLimit, logger: Logger
    ) {
        self.countLimit = countLimit
        self.time = time
        self.poller = poller
        self.tracker = tracker
        self.clock = clock
        self.sleepMax = sleepMax
        self.logger = logger
    }

    /// Polls until the task is cancelled, each feed in a child task of its own: a slow feed delays no other.
    func run(_ supervisor: Supervisor) async throws {
        try await supervisor.keep(.feeds, each: { (feed: ReadyCampaign) in try await pollInHand(feed) }) { polls in
            while !Task.isCancelled {
                let seen = tracker.changed.version
                var wait = sleepMax
                for feed in tracker.feeds where !inHand.contains(feed.campaign.name) {
                    let pause = try await pause(before: feed)
                    if pause > .zero {
                        wait = min(wait, pause)
                    } else if inHand.claim(feed.campaign.name) {
                        polls.yield(feed)
                    }
                }
                await tracker.changed.wait(after: seen, atMost: wait, clock: clock)
            }
        }
    }

    private func pollInHand(_ feed: ReadyCampaign) async throws {
        defer { if inHand.release(feed.campaign.name) { tracker.changed.raise() } }
        _ = try await pollAlone(feed)
    }

    /// Polls every feed that is due, once. An error of one feed cancels no other poll, and that feed backs off before
    /// the next poll. Returns the errors of the failed polls, by campaign.
    func pollDue() async throws -> [String: any Error] {
        var due: [ReadyCampaign] = []
        for feed in tracker.feeds where try await pause(before: feed) <= .zero { due.append(feed) }
        return try await withThrowingTaskGroup(of: (String, any Error)?.self) { group in
            var faults: [String: any Error] = [:]
            for (number, feed) in due.enumerated() {
                if number >= Self.pollsAtOnce, let fault = try await group.next() ?? nil { faults[fault.0] = fault.1 }
                group.addTask { try await pollAlone(feed).map { (feed.campaign.name, $0) } }
            }
            for try await fault in group { if let fault { faults[fault.0] = fault.1 } }
            return faults
        }
    }

    /// Polls one feed. Returns the error that ended the poll. Throws only an error that concerns all feeds.
    private func pollAlone(_ feed: ReadyCampaign) async throws -> (any Error)? {
        let name = feed.campaign.name
        do {
            try await poll(feed)
            rests.forget(name)
            return nil
        } catch {
            if Task.isCancelled || DaemonEnd.isReason(error, owner: poller.owner) { throw error }
            rests.failed(name, every: feed.campaign.feed?.every ?? sleepMax, at: clock.uptime())
            logger.error(
                "feed not polled; retrying later",
                metadata: .facts([.campaign: "\(name)", .error: "\(error)"]))
            return error
        }
    }

    private func pause(before feed: ReadyCampaign) async throws -> Duration {
        if let rest = rests.left(feed.campaign.name, at: clock.uptime()) { return rest }
        let now = try await time.now().moment
        return (try await poller.nextPoll(of: feed.campaign, now: now) ?? now + sleepMax) - now
    }

    private func poll(_ feed: ReadyCampaign) async throws {
        let now = try await time.now().moment
        let poll = try await ReadAllowance(limit: countLimit).use {
            try await poller.poll(feed.definition(plannedAt: now), now: now)
        }
        var metadata: Logger.Metadata = .facts([.campaign: "\(feed.campaign.name)"])
        for run in poll.runs {
            metadata[.occurrence] = "\(run.occurrence)"
            metadata[.run] = "\(run.id)"
            logger.notice("run of a new item", metadata: metadata)
            for finding in run.definition.lintOfValues() {
                metadata[.reason] = "\(finding)"
                logger.warning("the text of a new item may be a mistake", metadata: metadata)
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
        if poll.archived > 0 {
            metadata[.items] = "\(poll.archived)"
            metadata[.reason] = "published longer ago than late_by_max"
            logger.warning("new items not sent", metadata: metadata)
            (metadata[.items], metadata[.reason]) = (nil, nil)
        }
        switch poll.found {
        case .failed(let reason):
            metadata[.reason] = "\(reason)"
            logger.warning("feed not read; retrying later", metadata: metadata)
        case .tooManyNew(let count, let max):
            metadata[.reason] = "\(count) new items in one poll, more than max_new (\(max))"
            logger.error("new items held back", metadata: metadata)
        case .catalogue(let items):
            metadata[.items] = "\(items)"
            logger.notice("feed read for the first time; its items are treated as old and not sent", metadata: metadata)
        case .unchanged, .items, .overtaken: break
        }
    }
}

/// Feeds whose last poll failed for a reason outside the feed, with the end of each pause. The store does not record
/// such a failure. Times are ``WallClock/uptime``.
private final class FeedRests: Sendable {
    private static let pauseMax: Duration = .seconds(3600)

    private let rests = Mutex<[String: (pause: GrowingPause, until: Duration)]>([:])

    func failed(_ campaign: String, every: Duration, at uptime: Duration) {
        rests.withLock { rests in
            var pause = rests[campaign]?.pause ?? GrowingPause(first: every, max: max(every, Self.pauseMax))
            let until = uptime + pause.next()
            rests[campaign] = (pause, until)
        }
    }

    func forget(_ campaign: String) { rests.withLock { _ = $0.removeValue(forKey: campaign) } }

    /// Returns the remaining pause, or `nil` if there is none.
    func left(_ campaign: String, at uptime: Duration) -> Duration? {
        rests.withLock { $0[campaign].flatMap { $0.until > uptime ? $0.until - uptime : nil } }
    }
}

/// Feeds that are being polled, by campaign.
private final class FeedsInHand: Sendable {
    /// The maximum number of concurrent polls. The limits of a request and of a count bound the time of each poll.
    private static let max = 16

    private struct State {
        var names: Set<String> = []
        var isAnyLeft = false
    }

    private let state = Mutex(State())

    func contains(_ campaign: String) -> Bool { state.withLock { $0.names.contains(campaign) } }

    /// Returns `false` if too many feeds are being polled.
    func claim(_ campaign: String) -> Bool {
        state.withLock { state in
            guard state.names.count < Self.max else {
                state.isAnyLeft = true
                return false
            }
            return state.names.insert(campaign).inserted
        }
    }

    /// Returns whether another feed waited for this poll to end.
    func release(_ campaign: String) -> Bool {
        state.withLock { state in
            state.names.remove(campaign)
            defer { state.isAnyLeft = false }
            return state.isAnyLeft
        }
    }
}
