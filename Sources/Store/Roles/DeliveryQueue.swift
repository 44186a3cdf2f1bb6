package import Model

/// A run's deliveries from the frozen audience to the last outcome: the interface that `Sending` uses.
///
/// Each method is one transaction, or several complete ones if it says so. The counts balance after each of them.
package protocol DeliveryQueue: Sendable {
    /// A random UUID that is created once per store: the namespace of the `apns-id`s of its deliveries.
    var namespace: (high: UInt64, low: UInt64) { get }

    /// Freezes the run's audience: writes it as deliveries, each as ``FreezePolicy`` decides. One read snapshot
    /// selects the devices. Batches of some thousand deliveries are committed while this snapshot is open. `onBatch`
    /// is called for each batch, on the thread that reads, and sending may start with the first batch. Returns the
    /// run's counts; the run is frozen with the last batch.
    ///
    /// The campaign's holdout is written as suppressed, and each other device's variant with its delivery, see
    /// ``CampaignSplit``.
    ///
    /// After a cancellation or a crash, the method may be called again. It then continues after the highest device
    /// written. The rest is selected from a new snapshot, so devices that changed in between are seen as they are then.
    ///
    /// Throws ``StoreError/lostClaim(run:holder:)`` if `owner` does not own the run, or no longer owns it. Throws
    /// ``AudienceGrew`` if the run is for more devices than its ``ReachLimits`` allow: the run is paused and nothing
    /// is written. Throws ``FreezeDelayed`` if its turn does not come in time: nothing is changed.
    func freeze(
        _ run: Int64, by owner: String, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts

    /// Leases the next deliveries of one environment. Put-off deliveries that are due come first, then new ones in
    /// order of device after `after`. Each transaction reads `limit` of them. The call ends when there is something to
    /// send, nothing is left to read, or the work of one call is done, see ``LeaseRound``.
    ///
    /// ``LeasePolicy`` decides what may be sent. When the method returns, the lease survives a power failure. A push
    /// must not be sent before its lease is on disk: otherwise it could be sent again as if for the first time. A
    /// power failure may lose all other data, because a lost outcome only puts its delivery in doubt.
    ///
    /// Throws ``StoreError/lostClaim(run:holder:)`` if `owner` does not own the run.
    func lease(_ request: LeaseRequest) async throws -> Lease

    /// Records outcomes in one transaction, and returns the run's counts. An outcome counts once. A second outcome of
    /// the same lease of a delivery changes only the silent ledger, which takes the later time. The same holds for an
    /// outcome that comes after its lease was recovered.
    ///
    /// A device that was found gone is noted, and stays unchanged until ``markGone(run:now:)``.
    func settle(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts

    /// Returns the leases of a run, with their deliveries that have no outcome.
    func abandonedLeases(_ run: Int64) async throws -> [AbandonedLease]

    /// Returns the runs that have leased deliveries.
    func runsWithLeases() async throws -> [Int64]

    /// Ends leases whose owner is gone, in one transaction. It records the known outcomes of their deliveries, as
    /// ``settle(run:_:now:)`` does, and removes the leases. A delivery without an entry in `settlements` is pending
    /// again, as if it had not been leased. Either the caller owns the run, or `owner`, which is dead, still owns it.
    ///
    /// Throws ``StoreError/lostClaim(run:holder:)`` if `owner` no longer owns the run.
    func recover(
        _ run: Int64, heldBy owner: String, _ leases: [AbandonedLease], _ settlements: [Settlement], now: Timestamp
    ) async throws -> DeliveryCounts

    /// Suspends the active devices of one environment whose tokens APNs found ``TokenVerdict/mismatched`` in this run,
    /// if that still holds. Call it only for a run that is known to be healthy: with the wrong host or topic, every
    /// token gets these responses. Returns how many.
    func suspendMismatched(
        run: Int64, _ environment: PushEnvironment, now: Timestamp
    ) async throws -> Int

    /// Marks the devices that APNs found ``TokenVerdict/gone`` in this run, if that still holds, see
    /// ``TokenVerdict/holds(generation:at:for:)``. Call it only for a run that is known to be healthy: with the wrong
    /// host, every device may be found gone. Returns how many.
    func markGone(run: Int64, now: Timestamp) async throws -> Int

    /// Returns the numbers of responses, and of 410 responses, for each of the campaign's last
    /// ``StageEvaluator/historyRuns`` finished runs before this one.
    func goneBefore(run: Int64) async throws -> [(gone: Int, answered: Int)]

    /// Returns, for each environment, how many deliveries APNs decided on, and how many it found
    /// ``TokenVerdict/mismatched`` and ``TokenVerdict/gone``. Reads all deliveries of the run.
    func mismatchCounts(run: Int64) async throws -> [MismatchCount]

    /// Makes the deliveries of one environment pending again that APNs found ``TokenVerdict/mismatched``. It is for a
    /// run that was stopped because a wrong host or topic, not the tokens, caused these rejections. The rejected
    /// devices would otherwise never get the campaign after the host or topic is corrected. Returns how many.
    func reopenMismatched(
        run: Int64, _ environment: PushEnvironment, owner: String, now: Timestamp
    ) async throws -> Int

    /// Stores the report of a completed run with the run, so that later reports do not read its deliveries. Does
    /// nothing while deliveries may still change, or if the report is stored already.
    func summarizeOutcomes(run: Int64) async throws
}

/// The error of a freeze whose turn did not come in time. A store freezes a limited number of audiences at the same
/// time. A later attempt may succeed.
package struct FreezeDelayed: Error, Hashable, Sendable, CustomStringConvertible {
    /// The longest wait for a turn.
    package static let waitMax: Duration = .seconds(60)
    /// The pause before the next attempt for the run.
    package static let pause: Duration = .seconds(30)

    /// The number of audiences that the store freezes at the same time.
    package let atOnceMax: Int

    package init(atOnceMax: Int) { self.atOnceMax = atOnceMax }

    package var description: String {
        "\(atOnceMax) other audiences are being stored, and this run waited longer than "
            + "\(Self.waitMax.components.seconds) s; the run is retried later"
    }
}
