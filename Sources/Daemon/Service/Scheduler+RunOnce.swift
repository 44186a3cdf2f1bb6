package import Campaigns
package import Model
package import Sending
import Store

extension Scheduler {
    /// Does what the daemon would do now, and returns when nothing more is due within `idleLimit`. An error of one
    /// occurrence, feed or run delays no other, and is among the faults of the result.
    package func runOnce(_ snapshot: CampaignSnapshot, idleLimit: Duration) async throws -> DueOutcome {
        tracker.becameCoordinator()
        try await adopt(snapshot)
        var outcome = DueOutcome()
        try await startDueOnce(snapshot, &outcome)
        for (campaign, error) in try await feeds.pollDue().sorted(by: { $0.key < $1.key }) {
            outcome.faults.append(DueFault("the feed of \(campaign)", Self.failure(error)))
        }
        for run in try await store.unreadableRuns() where RunState(rawValue: run.state).map({ !$0.isFinal }) ?? true {
            outcome.faults.append(DueFault(run.campaign, Self.failure(run.error)))
        }
        let now = clock.now()
        let open = try await store.openRuns(for: actor.name, inHand: []).filter { HaltRetry.isDue($0, at: now) }
        try await carryOut(open, idleLimit: idleLimit, &outcome)
        outcome.runs.sort { $0.run.id < $1.run.id }
        return outcome
    }

    private func startDueOnce(_ snapshot: CampaignSnapshot, _ outcome: inout DueOutcome) async throws {
        let now = try await time.now().moment
        let dueRuns = DueRuns(store: store, actor: actor, approvals: approvals(), brake: brake())
        let due = try await dueRuns.awaited(snapshot.campaigns, now: now) + tracker.due(at: now)
        var delayed: Set<String> = []
        for entry in try await dueRuns.make(due, now: now) {
            log(entry)
            // A new run may have been created paused.
            if let run = entry.made.run, let end = RunEnd(run) { outcome.runs.append(DueRun(run: run, end: end)) }
            guard case .delayed(let delay) = entry.made else { continue }
            let campaign = entry.due.campaign.campaign.name
            delayed.insert(campaign)
            outcome.faults.append(
                DueFault("occurrence \(entry.due.occurrence.key) of \(campaign)", Failure(.tryAgain, delay.reason)))
        }
        // The next call looks for occurrences from the time of this call on.
        try await store.advanceScheduleMarks(of: tracker.names.filter { !delayed.contains($0) }, to: now)
    }

    private func carryOut(_ open: [Run], idleLimit: Duration, _ outcome: inout DueOutcome) async throws {
        let ends = try await withThrowingTaskGroup(of: (run: Run, end: Result<RunEnd, any Error>)?.self) { group in
            group.addTask {
                await senders.work()
                return nil
            }
            for run in open {
                group.addTask {
                    do {
                        return (run, .success(try await carryOut(run, idleLimit: idleLimit)))
                    } catch {
                        if Task.isCancelled || DaemonEnd.isReason(error, owner: actor.name) { throw error }
                        return (run, .failure(error))
                    }
                }
            }
            var ends: [(run: Run, end: Result<RunEnd, any Error>)] = []
            while ends.count < open.count, let answer = try await group.next() {
                if let ended = answer { ends.append(ended) }
            }
            senders.close()
            try await group.waitForAll()
            return ends
        }
        for (run, end) in ends {
            switch end {
            case .success(let end): outcome.runs.append(DueRun(run: run, end: end))
            case .failure(let error): outcome.faults.append(DueFault("run \(run.id)", Self.failure(error)))
            }
        }
    }

    private static func failure(_ error: any Error) -> Failure { Failure(error) ?? Failure(.internalError, "\(error)") }
}

/// The result of `run --due`.
package struct DueOutcome: Sendable {
    /// The runs that it sent, and those that it found missed or refused, by number.
    package var runs: [DueRun] = []
    /// The failures. The next call tries again.
    package var faults: [DueFault] = []

    package init() {}
}

/// One failure of `run --due`, which affects no other occurrence, feed or run.
package struct DueFault: Hashable, Sendable {
    /// The failure, whose sentences name the occurrence, feed or run.
    package var failure: Failure

    package init(_ subject: String, _ failure: Failure) {
        self.failure = failure
        self.failure.messages = failure.messages.map { "\(subject): \($0)" }
    }
}

/// A run that `run --due` executed, continued or recorded as not sent, with its end.
package struct DueRun: Hashable, Sendable {
    package var run: Run
    package var end: RunEnd

    package init(run: Run, end: RunEnd) {
        self.run = run
        self.end = end
    }
}

/// The stable shape of `run --due --json`.
package struct DueResult: Codable, Hashable, Sendable {
    package struct Entry: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var occurrence: String
        package var state: String
        package var stateReason: String?
        /// As in ``RunResult``.
        package var halt: String?
        package var counts: CountsResult
    }

    package var runs: [Entry]

    package init(ended: [DueRun]) {
        runs = ended.map { ended in
            Entry(
                run: ended.run.id, campaign: ended.run.campaign, occurrence: ended.run.occurrence,
                state: ended.run.state.rawValue, stateReason: ended.run.stateReason, halt: ended.run.halt?.rawValue,
                counts: CountsResult(ended.run.counts))
        }
    }
}
