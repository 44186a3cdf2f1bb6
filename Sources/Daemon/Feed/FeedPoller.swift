package import Campaigns
package import FeedReader
package import Model
package import Store
package import WebClient

/// Polls campaigns' feeds for new items, and creates a run for each:
///
///     fetch -> read -> create runs of new items -> record the feed's state and items
///
/// The runs are created before the record, and each run is named after its item. After a crash in between, the next
/// poll finds the runs by their names. A recorded item starts no further run, even if the item is edited.
package struct FeedPoller: Sendable {
    package typealias FeedStore = ApprovePlans.PlanStore & DaemonLog

    private static let failedPollsMax = 4
    private static let backoffMax: Duration = .seconds(3600)

    private let store: any FeedStore
    let web: HTTPClient
    /// The actor that is recorded as the creator of the runs.
    private let actor: Actor

    private let approvals: @Sendable () -> ApprovalRules?
    private let brake: @Sendable () -> Configuration.VolumeBrake?

    package init(
        store: any FeedStore, web: HTTPClient, actor: Actor,
        approvals: @escaping @Sendable () -> ApprovalRules? = { nil },
        brake: @escaping @Sendable () -> Configuration.VolumeBrake? = { nil }
    ) {
        self.brake = brake
        self.approvals = approvals
        self.store = store
        self.web = web
        self.actor = actor
    }

    /// The name of this sender.
    var owner: String { actor.name }

    /// Returns the state of the campaign's feed after the last poll. `nil` if the feed was never polled.
    package func state(of campaign: Campaign) async throws -> FeedState? {
        try await store.feedState(campaign: campaign.name)
    }

    /// Returns the runs that the feed started and that may be sent now, including those of an interrupted poll.
    package func openRuns(of campaign: Campaign, now: Timestamp) async throws -> [Run] {
        try await store.openFeedRuns(campaign: campaign.name).filter { HaltRetry.isDue($0, at: now) }
    }

    /// Returns when the campaign's feed is to be polled next: immediately if it was never polled. After each failed
    /// poll the pause doubles, up to 16 intervals and at most an hour, but never below one interval.
    package func nextPoll(of campaign: Campaign, now: Timestamp) async throws -> Timestamp? {
        guard let feed = campaign.feed else { return nil }
        guard let state = try await store.feedState(campaign: campaign.name), state.url == feed.url else { return now }
        // If the last poll is in the future, the clock was set back.
        guard state.polledAt <= now else { return now }
        var pause = feed.every
        for _ in 0..<min(state.failures, Self.failedPollsMax) { pause = pause * 2 }
        return state.polledAt + max(feed.every, min(pause, Self.backoffMax))
    }

    /// Polls once. Throws only errors of the store. A problem of the feed is in the result.
    ///
    /// - Parameter definition: the campaign's definition, with its templates and its variables' defaults. Each run
    ///   gets the values of its item, and `now` as its planned time.
    package func poll(_ definition: RunDefinition, now: Timestamp) async throws -> FeedPoll {
        let name = definition.campaign.name
        guard let trigger = definition.campaign.feed else { return FeedPoll(found: .unchanged) }
        let known = try await store.feedState(campaign: name)
        let isFirst = known?.url != trigger.url || known?.isRead == false
        var state = FeedState(url: trigger.url, polledAt: now)
        let fetched: (feed: Feed?, etag: String?, lastModified: String?)
        do throws(FeedFailure) {
            fetched = try await fetch(trigger.url, unlessLike: isFirst ? nil : known)
        } catch {
            // If the task was cancelled, the error says nothing about the feed.
            try Task.checkCancellation()
            if !isFirst, let known { state = known }
            (state.polledAt, state.isRead, state.problem) = (now, !isFirst, error.description)
            state.failures = (known?.url == trigger.url ? known?.failures ?? 0 : 0) + 1
            return try await record(name, state, [], known, FeedPoll(found: .failed(error.description)))
        }
        (state.etag, state.lastModified) = (fetched.etag, fetched.lastModified)
        guard let feed = fetched.feed else {
            return try await record(name, state, [], known, FeedPoll(found: .unchanged))
        }
        let items = Self.keyed(feed)
        if isFirst {
            return try await record(
                name, state, items.map(\.key), known, FeedPoll(found: .catalogue(items: items.count)))
        }
        let poll = try await start(items, of: feed, definition, trigger, now)
        return try await record(name, state, items.map(\.key), known, poll)
    }

    /// Returns the current items, newest first, with the values of the campaign's variables. Changes nothing.
    package func preview(_ campaign: Campaign, limit: Int) async throws -> [FeedPreview] {
        guard let trigger = campaign.feed else { return [] }
        let feed = try await fetch(trigger.url, unlessLike: nil).feed ?? Feed()
        let items = Self.keyed(feed).prefix(limit)
        let seen = try await store.seenFeedItems(campaign: campaign.name, among: items.map(\.key))
        return items.map { key, item in
            FeedPreview(
                occurrence: key, item: item, isSeen: seen.contains(key),
                variables: trigger.variables.mapValues { feed.value($0, of: item) })
        }
    }
}

extension FeedPoller {
    private typealias Keyed = (key: String, item: FeedItem)

    /// Returns the items with their keys. An item without a guid is left out, and so is every further item with the
    /// same key.
    private static func keyed(_ feed: Feed) -> [Keyed] {
        var keys: Set<String> = []
        return feed.items.filter { !$0.guid.isEmpty }.map { (FeedItemKey.key(guid: $0.guid), $0) }
            .filter { keys.insert($0.0).inserted }
    }

    private func start(
        _ items: [Keyed], of feed: Feed, _ definition: RunDefinition, _ trigger: FeedTrigger, _ now: Timestamp
    ) async throws -> FeedPoll {
        let campaign = definition.campaign.name
        let seen = try await store.seenFeedItems(campaign: campaign, among: items.map(\.key))
        let new = items.filter { !seen.contains($0.key) }
        var poll = FeedPoll(found: .items(items.count))
        let fresh = new.filter { !Self.isLate($0.item, trigger, now) }
        let late = new.count - fresh.count
        guard fresh.count <= trigger.newMax else {
            let facts = "\(fresh.count) new items in one poll, above max_new (\(trigger.newMax)); none is sent"
            try await store.recordEvent(
                kind: .feedHeld, run: nil, actor: actor, detail: "\(campaign): \(facts)", now: now)
            poll.found = .tooManyNew(count: fresh.count, max: trigger.newMax)
            return poll
        }
        if late > trigger.newMax {
            // The feed has grown backwards: its archive is no news.
            let facts =
                "\(late) new items in one poll were published more than "
                + "\(WrittenDuration.text(trigger.lateByMax)) ago (late_by_max); none of these is sent"
            try await store.recordEvent(
                kind: .feedHeld, run: nil, actor: actor, detail: "\(campaign): \(facts)", now: now)
            poll.archived = late
        }
        let starter = FeedRunStarter(
            store: store, definition: definition, actor: actor, now: now, approvals: approvals(),
            brake: brake())
        // A feed lists its newest item first, so reverse the order to create the runs in the order of publication.
        for (key, item) in (poll.archived > 0 ? fresh : new).reversed() {
            let values = trigger.variables.mapValues { feed.value($0, of: item) }
            if let published = item.published, Self.isLate(item, trigger, now) {
                let late =
                    "published \(WrittenDuration.text(now - published)) ago; late_by_max is "
                    + WrittenDuration.text(trigger.lateByMax)
                if try await starter.end(key, values, .missed, late) {
                    poll.ended.append(.missed(occurrence: key, reason: late))
                }
                continue
            }
            switch try await starter.start(key, values) {
            case .run(let run): poll.runs.append(run)
            case .refused(let reason): poll.ended.append(.refused(occurrence: key, reason: reason))
            case .known: break
            }
        }
        return poll
    }

    private static func isLate(_ item: FeedItem, _ trigger: FeedTrigger, _ now: Timestamp) -> Bool {
        item.published.map { $0 + trigger.lateByMax < now } ?? false
    }

    private func record(
        _ campaign: String, _ state: FeedState, _ keys: [String], _ known: FeedState?, _ poll: FeedPoll
    ) async throws -> FeedPoll {
        var poll = poll
        if try await !store.recordFeedPoll(campaign: campaign, state, seen: keys, after: known), poll.runs.isEmpty {
            poll.found = .overtaken
        }
        return poll
    }
}

/// The result of one poll of a campaign's feed.
package struct FeedPoll: Hashable, Sendable {
    package enum Found: Hashable, Sendable {
        /// The server says that nothing has changed.
        case unchanged
        /// The first poll of this address. The feed's present items are its back catalogue, which is never sent.
        case catalogue(items: Int)
        /// The number of items in the feed, new or not.
        case items(Int)
        /// More new items than `max_new`. None is sent, because the feed may have been rebuilt. From now on, all of
        /// them count as seen.
        case tooManyNew(count: Int, max: Int)
        /// No usable response. The feed is polled again later.
        case failed(String)
        /// Another process polled at the same time, and its result counts.
        case overtaken
    }

    package enum Ended: Hashable, Sendable {
        /// The item was published longer ago than `late_by_max`.
        case missed(occurrence: String, reason: String)
        /// A guard refused the item, or its payload cannot be rendered.
        case refused(occurrence: String, reason: String)

        var occurrence: String {
            switch self {
            case .missed(let occurrence, _), .refused(let occurrence, _): occurrence
            }
        }

        var reason: String {
            switch self {
            case .missed(_, let reason), .refused(_, let reason): reason
            }
        }
    }

    package var found: Found
    /// The runs that this poll created, oldest item first, to be sent.
    package var runs: [Run] = []
    /// The new items that are not sent, recorded as missed or failed runs.
    package var ended: [Ended] = []
    /// The number of new items that are too late to be sent, if there are more of them than `max_new`. They count as
    /// seen, and one event records them in place of a run for each.
    package var archived = 0

    package init(found: Found) {
        self.found = found
    }
}

/// An item as a campaign would send it.
package struct FeedPreview: Hashable, Sendable {
    package var occurrence: String
    package var item: FeedItem
    package var isSeen: Bool
    /// The values by the variables' names.
    package var variables: [String: String]
}
