package import Model

/// The state that a daemon must remember: its schedules, the feeds that it has read, the webhook messages that it must
/// deliver, and the identity of the daemon.
package protocol DaemonLog: Sendable {
    /// Returns the marks by campaign.
    func scheduleMarks() async throws -> [String: ScheduleMark]

    /// Sets marks. If two processes set the same mark, the earlier time stays, so that no occurrence in between is
    /// lost.
    func setScheduleMarks(_ marks: [ScheduleMark]) async throws

    /// Records that every occurrence of these campaigns up to a moment has its run, so that it is not checked again.
    func advanceScheduleMarks(of campaigns: [String], to moment: Timestamp) async throws

    /// Removes the marks of campaigns whose files are gone. A campaign whose file is added again gets a new mark.
    func removeScheduleMarks(of campaigns: [String]) async throws

    /// Returns `nil` if the campaign's feed was never polled.
    func feedState(campaign: String) async throws -> FeedState?

    /// Returns those of these items that an earlier poll saw, whatever their outcome.
    func seenFeedItems(campaign: String, among keys: [String]) async throws -> Set<String>

    /// Records a poll: the feed's state, and its items as seen. Call it after the runs of the new items are stored,
    /// because a seen item starts no run. Returns `false`, and writes nothing, if another process has polled since
    /// `known` was read.
    func recordFeedPoll(
        campaign: String, _ state: FeedState, seen keys: [String], after known: FeedState?
    ) async throws -> Bool

    /// Registers the webhooks of a configuration, which get messages from now on. The webhooks of other living daemons
    /// stay registered, and all others do not. Messages to a webhook that is not registered are neither claimed nor
    /// counted. They wait until it is registered again, or until ``pruneWebhooks(messagesBefore:)`` deletes them.
    ///
    /// - Parameter daemon: the sender name of the daemon that has the configuration. `nil` for a command while no
    ///   daemon runs.
    func setWebhooks(_ webhooks: [Configuration.Webhook], of daemon: String?) async throws

    /// Registers the webhooks of a daemon again if another process has removed one of them.
    func keepWebhooks(_ webhooks: [Configuration.Webhook], of daemon: String) async throws

    /// Removes the webhooks that only dead daemons have, and deletes messages from before `moment` to webhooks that are
    /// not registered. Returns the number of deleted messages.
    func pruneWebhooks(messagesBefore moment: Timestamp) async throws -> Int

    /// Claims messages that are due, oldest first, and counts an attempt for each. No other process gets them before
    /// `until`. If the process dies before it delivers a message, the message is sent again after that.
    ///
    /// - Parameter urls: the registered webhooks whose messages are claimed; `nil` for all.
    func takeWebhookMessages(
        now: Timestamp, limit: Int, until: Timestamp, of urls: Set<String>?
    ) async throws -> [WebhookMessage]

    /// Returns the time at which the next message is due; `nil` if there is none.
    ///
    /// - Parameter urls: the registered webhooks whose messages count; `nil` for all.
    func nextWebhookMessage(of urls: Set<String>?) async throws -> Timestamp?

    /// Removes a message that was delivered or given up.
    func removeWebhookMessage(_ id: Int64) async throws

    /// Schedules another attempt, not before `until`.
    ///
    /// - Parameter problem: why the last attempt failed, for a person.
    func postponeWebhookMessage(_ id: Int64, until: Timestamp, problem: String) async throws

    /// Makes `owner` the store's daemon. If another daemon is alive, it is returned and nothing changes: a store has
    /// one daemon at a time.
    func becomeDaemon(owner: String, now: Timestamp) async throws -> DaemonHeartbeat?

    /// Records the daemon's status and the time. Returns `false` if another process is the daemon now.
    func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool

    /// Gives up the daemon's role. Does nothing if `owner` is not the daemon.
    func resignDaemon(owner: String) async throws

    /// Returns the daemon that is alive, however old its heartbeat is; `nil` if there is none.
    func daemon() async throws -> DaemonHeartbeat?
}

extension DaemonLog {
    /// Registers the webhooks of a command.
    package func setWebhooks(_ webhooks: [Configuration.Webhook]) async throws {
        try await setWebhooks(webhooks, of: nil)
    }

    package func takeWebhookMessages(now: Timestamp, limit: Int, until: Timestamp) async throws -> [WebhookMessage] {
        try await takeWebhookMessages(now: now, limit: limit, until: until, of: nil)
    }

    package func nextWebhookMessage() async throws -> Timestamp? { try await nextWebhookMessage(of: nil) }
}
