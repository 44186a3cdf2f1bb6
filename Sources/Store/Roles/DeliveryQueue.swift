package import Model

/// A run's deliveries from the frozen audience to the last outcome: what `Sending` works on.
///
/// Each method is one transaction, or several whole ones where it says so. The sums close after each of them.
package protocol DeliveryQueue: Sendable {
    /// A random UUID made once per store; the name space of the `apns-id`s of its deliveries.
    var namespace: (high: UInt64, low: UInt64) { get }

    /// Writes the run's audience down as deliveries, each as ``FreezePolicy`` says: one read snapshot says who is in, batches of some thousand are
    /// committed while it lasts, and `onBatch` is told of each, on the thread that reads. Sending may start
    /// with the first. Returns the run's account; the run is frozen with the last batch.
    ///
    /// The holdout of the campaign is written down as suppressed, and each other device's variant with its delivery, see
    /// ``CampaignSplit``.
    ///
    /// Cancelled or crashed, it may be called again: it goes on behind the highest device written. The rest is then
    /// selected from a new snapshot, so that devices changed in between are seen as they are then.
    ///
    /// ``StoreError/lostClaim(run:holder:)`` when the run is not `owner`'s, or no longer; ``GrownRun``, with the run paused and
    /// nothing written down, when it is for more devices than its ``ReachLimits`` allow. ``FreezeDelayed`` if its turn does not
    /// come in time, with nothing changed.
    func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts

    /// Takes the next deliveries of one environment for sending: first those put off whose time has come, then fresh
    /// ones in order of device behind `after`. Looks at `limit` of them per transaction, until there is something to
    /// send, nothing is left to look at, or the work of one call is done: see ``LeaseTurn``.
    ///
    /// What may be sent is ``LeasePolicy``'s to say. The lease is safe from a power failure when this returns: a push must
    /// not leave before the record that it may have left, or it would be sent again as if for the first time. Everything
    /// else may be lost with the power, since a lost outcome only turns its delivery doubtful.
    ///
    /// ``StoreError/lostClaim(run:holder:)`` when the run is not `owner`'s.
    func lease(_ request: LeaseRequest) async throws -> Lease

    /// Records outcomes, in one transaction, and returns the run's account. An outcome counts once: a second one for
    /// the same lease of a delivery, or one that comes after its lease was recovered, changes nothing but the silent
    /// ledger, which takes the later time.
    ///
    /// A device found gone is noted, and left as it is until ``markGone(run:now:)``.
    func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts

    /// The leases of a run, with their deliveries that have no outcome.
    func leasesLeft(_ run: Int64) async throws -> [LeftLease]

    /// Runs of which something is leased.
    func runsWithLeases() async throws -> [Int64]

    /// Ends leases whose owner is gone: records what is known of their deliveries, as ``settle(run:_:now:)`` does, and
    /// removes them, in one transaction. A delivery that none of `settlements` is about is pending again, as if it had
    /// not been leased. To be called by whoever has the run, or for a run that `owner`, who is gone, still has.
    ///
    /// ``StoreError/lostClaim(run:holder:)`` when the run is not `owner`'s any more.
    func recover(
        _ run: Int64, heldBy owner: String, _ leases: [LeftLease], _ settlements: [Settlement], now: Timestamp
    ) async throws -> DeliveryCounts

    /// Suspends the active devices of one environment whose tokens APNs found ``TokenVerdict/mismatched`` in this run, where
    /// that still holds. For a run known healthy only: with the wrong host or topic every token draws these answers.
    /// Returns how many.
    func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int

    /// Marks the devices that APNs found ``TokenVerdict/gone`` in this run, where that still holds, see
    /// ``TokenVerdict/holds(generation:at:for:)``. For a run known healthy only: with the wrong host every device may be
    /// found so. Returns how many.
    func markGone(run: Int64, now: Timestamp) async throws -> Int

    /// Of each of the campaign's last ``StageJudge/historyRuns`` finished runs before this one, how many deliveries APNs
    /// answered, and with 410.
    func goneBefore(run: Int64) async throws -> [(gone: Int, answered: Int)]

    /// How many deliveries of each environment APNs decided on, and found ``TokenVerdict/mismatched`` and
    /// ``TokenVerdict/gone``. Reads all deliveries of the run.
    func mismatchCounts(run: Int64) async throws -> [MismatchCount]

    /// Makes the deliveries of one environment pending again that APNs found ``TokenVerdict/mismatched``: for a run stopped
    /// because a wrong host or topic, not the tokens, caused these rejections. Otherwise nobody refused so would ever get
    /// the campaign once the host or the topic is put right. Returns how many.
    func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int

    /// Keeps the report of a run that has nothing left to do with the run itself, so that no later one reads its
    /// deliveries. Does nothing while deliveries may still change, and when it was done before.
    func summarizeOutcomes(run: Int64) async throws
}

/// A store writes down a limited number of audiences at the same time, and this one's turn did not come in time. A later
/// attempt may succeed.
package struct FreezeDelayed: Error, Hashable, Sendable, CustomStringConvertible {
    /// The longest wait for a turn.
    package static let waitMax: Duration = .seconds(60)
    /// How long a run is left alone before the next attempt.
    package static let pause: Duration = .seconds(30)

    /// The number of audiences that the store writes down at the same time.
    package let atOnceMax: Int

    package init(atOnceMax: Int) { self.atOnceMax = atOnceMax }

    package var description: String {
        "\(atOnceMax) other audiences are being written down, and this run's turn did not come within "
            + "\(Self.waitMax.components.seconds) s; the run is tried again later"
    }
}
