package import Model

/// What a daemon must remember: the schedules it answers for, the feeds it has read, the messages it owes webhooks, and who the daemon is.
package protocol DaemonLog: Sendable {
    /// By campaign.
    func scheduleMarks() async throws -> [String: ScheduleMark]

    /// Two processes may set the same mark: the earlier time stays, so that nothing in between is lost.
    func setScheduleMarks(_ marks: [ScheduleMark]) async throws

    /// Everything these campaigns had to start up to a moment has its run: nobody needs to look at it again.
    func advanceScheduleMarks(of campaigns: [String], to moment: Timestamp) async throws

    /// Forgets campaigns whose files are gone: one that comes back begins anew.
    func removeScheduleMarks(of campaigns: [String]) async throws

    /// Nil: the campaign's feed was never polled.
    func feedState(campaign: String) async throws -> FeedState?

    /// Those of the items that an earlier poll saw, whatever became of them.
    func seenFeedItems(campaign: String, among keys: [String]) async throws -> Set<String>

    /// Puts a poll on record: the feed's state, and its items as seen. To be called when the runs of the new items are in
    /// the store, since an item that was seen starts nothing any more. False, with nothing written, when another process
    /// has polled since `known` was read.
    func recordFeedPoll(
        campaign: String, _ state: FeedState, seen keys: [String], after known: FeedState?
    ) async throws -> Bool

    /// Sets who is told what from now on. Messages to webhooks that are no longer among them are dropped.
    func setWebhooks(_ webhooks: [Configuration.Webhook]) async throws

    /// Takes messages that are due, oldest first, each counted as tried. Nobody else gets them before `until`; whoever
    /// dies before it delivers one has it sent again after that.
    func takeWebhookMessages(now: Timestamp, limit: Int, until: Timestamp) async throws -> [WebhookMessage]

    /// When the next message is due; nil: there is none.
    func nextWebhookMessage() async throws -> Timestamp?

    /// Removes a message that was delivered or given up.
    func removeWebhookMessage(_ id: Int64) async throws

    /// Delivers it again, not before that time.
    ///
    /// - Parameter problem: why the last attempt failed, for a person.
    func postponeWebhookMessage(_ id: Int64, until: Timestamp, problem: String) async throws

    /// Makes `owner` the store's daemon, unless another one is alive, which is then returned: there is one at a time.
    func becomeDaemon(owner: String, now: Timestamp) async throws -> DaemonHeartbeat?

    /// Says how the daemon is, and when that was. False: another process is the daemon now.
    func daemonHeartbeat(owner: String, _ status: DaemonStatus, now: Timestamp) async throws -> Bool

    /// Does nothing when `owner` is not the daemon.
    func resignDaemon(owner: String) async throws

    /// The daemon that is alive, however long it has been silent, if there is one.
    func daemon() async throws -> DaemonHeartbeat?
}
