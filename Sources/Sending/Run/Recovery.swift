import APNs
package import Model
import Platform
package import Senders
package import Store

/// The outcomes of the deliveries that a sender left in flight.
package struct RecoveryCounts: Hashable, Sendable {
    package var leases = 0
    /// Deliveries whose request was not started. They are pending again, as if they had not been leased.
    package var notStarted = 0
    /// Deliveries settled with the response of APNs in the journal.
    package var answered = 0
    /// Deliveries in doubt that are pending again.
    package var resent = 0
    /// Deliveries in doubt whose outcome is finally `unknown`.
    package var unknown = 0
    /// The reason why a journal was not trusted, so that every delivery leased by its sender is in doubt.
    package var distrust: String?

    package init() {}

    /// The counts as a phrase for a person, after "which has exited or no longer responds: ".
    package var summary: String {
        var parts: [String] = []
        if notStarted > 0 { parts.append("\(notStarted.counted("delivery was", "deliveries were")) not started") }
        if answered > 0 { parts.append("\(answered.counted("had a response", "had responses"))") }
        func onTheWire(_ count: Int) -> String { count.counted("was in flight and is", "were in flight and are") }
        if resent > 0 { parts.append("\(onTheWire(resent)) sent once more") }
        if unknown > 0 { parts.append("\(onTheWire(unknown)) unknown") }
        if let distrust { parts.append("all of them are in doubt, because \(distrust)") }
        return parts.isEmpty ? "nothing was in flight" : parts.joined(separator: ", ")
    }
}

/// A run whose process ended without releasing the run.
package struct AbandonedRun: Hashable, Sendable {
    package var run: Int64
    /// The process that owned the run.
    package var owner: String
    package var recovered: RecoveryCounts

    /// The abandoned run as a sentence for a person.
    package var summary: String {
        "run \(run) was abandoned by \(ProcessName.shown(owner)), which has exited: \(recovered.summary)"
    }
}

/// Recovers what dead senders left in flight. Each delivery is settled by the entry in its sender's journal:
///
///     queued, or no entry      pending again, attempt and budget unchanged
///     answered                 settled as if the response had just arrived
///     started                  in doubt: `on_unknown` decides
///     journal not trusted      every delivery is in doubt
package struct Recovery: Sendable {
    private let store: any SendingStore
    private let journals: SenderJournals
    private let clock: WallClock

    package init(store: any SendingStore, journals: SenderJournals, clock: WallClock) {
        self.store = store
        self.journals = journals
        self.clock = clock
    }

    /// Recovers the leases of dead senders, for a caller that has claimed the run and not sent anything yet.
    package func recover(_ run: Run, heldBy owner: String) async throws -> RecoveryCounts {
        try await recover(run, heldBy: owner, leftBy: store.takeOverLeases(of: run.id, besides: owner))
    }

    /// Recovers the leases of the sender's own earlier attempt, before it sends as a participant of another sender's
    /// run.
    func recoverOwn(_ run: Run, of sender: String) async throws {
        _ = try await recover(run, heldBy: sender, leftBy: [sender])
    }

    /// Leaves a run for a sender that is recorded there but does not work on it. The caller makes sure of that.
    ///
    /// A sender is in this position if the store was unavailable when it stopped working on the run, or lost the
    /// response to its claim. While the sender is alive, no other process ends the run. The run keeps its last
    /// heartbeat, from which its lateness counts.
    func leave(_ run: Run, as sender: Actor) async throws -> RecoveryCounts {
        let now = clock.now()
        let counts = try await recover(run, heldBy: sender.name, leftBy: [sender.name])
        if run.owner != sender.name {
            try await store.leave(run.id, by: sender, now: now)
        } else if run.state == .cancelled {
            try await store.release(run.id, by: sender, state: .running, reason: nil, now: now)
        } else {
            _ = try await store.abandon(run.id, of: sender.name, now: now)
        }
        return counts
    }

    /// Recovers the leases of dead participants, for the lead of a run in progress.
    func recoverLost(_ run: Run, heldBy owner: String) async throws -> RecoveryCounts {
        try await recover(run, heldBy: owner, leftBy: store.takeOverLeases(of: run.id, besides: nil))
    }

    /// Recovers leases that the sender has already settled and the server still lists under its name. The server has
    /// lost the outcomes, and the journal has freed the entries, so the deliveries are in doubt.
    func recoverForgotten(_ leases: Set<Int64>, of run: Run, by sender: String) async throws -> RecoveryCounts {
        let left = try await store.abandonedLeases(run.id).filter { leases.contains($0.id) && $0.owner == sender }
        return try await recover(run, heldBy: sender, left) { _ in .failure(.forgotten) }
    }

    private func recover(_ run: Run, heldBy owner: String, leftBy gone: Set<String>) async throws -> RecoveryCounts {
        let left = try await store.abandonedLeases(run.id).filter { gone.contains($0.owner) }
        return try await recover(run, heldBy: owner, left, journals.evidence)
    }

    private func recover(
        _ run: Run, heldBy owner: String, _ left: [AbandonedLease],
        _ evidence: (_ sender: String) -> Result<JournalEvidence, JournalDistrust>
    ) async throws -> RecoveryCounts {
        guard !left.isEmpty else { return RecoveryCounts() }
        let now = clock.now()
        let time = ConfirmedTime(now, after: try await store.clockSteps(since: now - ConfirmedTime.confirmedAfter * 2))
        var counts = RecoveryCounts()
        counts.leases = left.count
        let policy = SettlementPolicy(run.definition, backoff: RetryWait { 0 })
        var settlements: [Settlement] = []
        for (sender, leases) in Dictionary(grouping: left, by: \.owner).sorted(by: { $0.key < $1.key }) {
            let evidence = evidence(sender)
            if case .failure(let why) = evidence { counts.distrust = why.description }
            for lease in leases {
                settlements += settle(lease, evidence, policy, now: now, lag: time.lag, &counts)
            }
        }
        _ = try await store.recover(run.id, heldBy: owner, left, settlements, now: now)
        try await store.recordEvent(
            kind: .runRecovered, run: run.id, actor: Actor(owner),
            detail: "abandoned by \(Set(left.map(\.owner)).map(ProcessName.shown).sorted().joined(separator: ", ")): "
                + counts.summary, now: now)
        return counts
    }

    /// Waits for at most three trust windows until this machine may take over its recently ended senders. It can then
    /// recover their deliveries with their journals.
    ///
    /// Returns the name of a sender that has no lock on this machine and still sends heartbeats, or `nil`. Such a
    /// sender runs on another machine, and this machine's folder is a copy of that machine's folder.
    package func waitForEnded() async throws -> String? {
        var heard = try await store.endedLately()
        var advanced: Set<String> = []
        for _ in 0..<3 where !heard.isEmpty {
            await clock.sleep(SenderTrust.window + .milliseconds(100))
            let next = try await store.endedLately()
            let ahead = Set(next.filter { sender in heard[sender.key].map { $0 < sender.value } ?? false }.keys)
            // The first advance may come from a heartbeat that was in flight when its process ended.
            if let copied = ahead.intersection(advanced).min() { return copied }
            (heard, advanced) = (next, ahead)
        }
        return nil
    }

    /// Recovers and releases every run whose owner is dead. Commands that send, pause, resume or cancel call this
    /// first. Commands that only read do not call it.
    ///
    /// A lasting error of one run delays no other: the first is thrown after all runs.
    ///
    /// - Parameter isOnlyCancelled: whether to leave other runs alone, because this process may claim one of them
    ///   meanwhile.
    package func recoverAbandoned(isOnlyCancelled: Bool = false) async throws -> [AbandonedRun] {
        var abandoned: [AbandonedRun] = []
        var failure: (any Error)?
        for run in try await store.abandonedRuns() where !isOnlyCancelled || run.state == .cancelled {
            do {
                if let found = try await recoverAbandoned(run) { abandoned.append(found) }
            } catch StoreError.lostClaim {
                // Another process was faster.
            } catch {
                // A store that is unavailable refuses the other runs, too.
                if Task.isCancelled || error is CancellationError || (error as? StoreError)?.isPassing == true {
                    throw error
                }
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return abandoned
    }

    /// Returns `nil` if no sender of the run is dead, or nothing is to be reported.
    private func recoverAbandoned(_ run: Run) async throws -> AbandonedRun? {
        guard let owner = run.owner else {
            _ = try await store.abandon(run.id, of: nil, now: clock.now())
            return nil
        }
        let gone = try await store.takeOverLeases(of: run.id, besides: nil)
        // No sender is dead: the owner was only unresponsive.
        guard !gone.isEmpty else { return nil }
        let counts = try await recover(run, heldBy: owner, leftBy: gone)
        guard gone.contains(owner) else {
            // The lead is alive and continues the run.
            guard counts.leases > 0 else { return nil }
            return AbandonedRun(run: run.id, owner: gone.sorted().joined(separator: ", "), recovered: counts)
        }
        guard try await store.abandon(run.id, of: owner, now: clock.now()) else { return nil }
        return AbandonedRun(run: run.id, owner: owner, recovered: counts)
    }

    private func settle(
        _ lease: AbandonedLease, _ evidence: Result<JournalEvidence, JournalDistrust>, _ policy: SettlementPolicy,
        now: Timestamp, lag: Duration, _ counts: inout RecoveryCounts
    ) -> [Settlement] {
        lease.deliveries.map { delivery in
            let entry = (try? evidence.get()).map {
                $0.entries[lease.id]?[delivery.device] ?? JournalEntry(state: .queued)
            }
            let result = entry?.result ?? .unknown(.interrupted)
            let sent = SettlementPolicy.Sent(
                lease: lease.id, device: delivery.device, generation: delivery.generation,
                leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, excused: delivery.excused,
                localeIndex: entry?.localeIndex, wave: delivery.wave, stage: delivery.stage,
                sentAt: lease.leasedAt)
            var settlement = policy.settlement(of: sent, result, OutcomePolicy.row(for: result), now: now, lag: lag)
            // If a delivery is retried immediately, its lateness counts from the time of the lease. If that time is in
            // the future, the lease's clock was ahead: use `now` instead.
            if settlement.verdict == .retry(notBefore: now) {
                settlement.verdict = .retry(notBefore: min(lease.leasedAt, now))
            }
            switch (result, settlement.verdict) {
            case (.notSent, _): counts.notStarted += 1
            case (.answered, _), (.cutOff, _): counts.answered += 1
            case (.unknown, .unknown): counts.unknown += 1
            case (.unknown, _): counts.resent += 1
            }
            return settlement
        }
    }
}

extension JournalEntry {
    /// The last result that the sender recorded for the push.
    fileprivate var result: PushResult {
        switch state {
        case .queued: .notSent(.interrupted)
        case .started: .unknown(.interrupted)
        case .answered(let response): .answered(response)
        }
    }
}
