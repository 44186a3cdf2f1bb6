import Campaigns
import Model
import Platform
import Sending
import Store
import Synchronization

extension Scheduler {
    /// Occurrences of one campaign that are due.
    private struct DueStart: Sendable {
        var due: [Agenda.Due]
        var now: Timestamp
    }

    /// Starts the due occurrences. A campaign with a slow count delays no other, because the loop does not wait for
    /// starts to end.
    func startDue(_ launches: AsyncStream<Run>.Continuation) async throws {
        let backlog = Mutex(DueBacklog())
        try await supervisor.keep(
            .schedules, each: { (start: DueStart) in try await self.start(start, backlog, launches) }
        ) { starts in
            while !Task.isCancelled {
                let seen = tracker.changed.version
                let new = tracker.due(at: try await time.now().moment)
                backlog.withLock { $0.add(new) }
                let approvals = approvals()
                // Nothing starts while a stop is in force. Once the stop is lifted, an occurrence that is too late is
                // missed.
                try await senders.waitForLift()
                let found = try await time.now()
                let (now, uptime) = (found.moment, clock.uptime())
                // First, because a look at an occurrence that waits for approval may take long.
                for due in backlog.withLock({ $0.begin(at: uptime) }) { starts.yield(DueStart(due: due, now: now)) }
                let awaited = try await dueRuns(approvals).awaited(
                    tracker.snapshot?.campaigns ?? [], now: now, slowMax: 1
                ) { due in backlog.withLock { $0.isDecided(due) } }
                for due in backlog.withLock({ $0.begin(at: uptime, with: awaited) }) {
                    starts.yield(DueStart(due: due, now: now))
                }
                // The daemon is not notified of an approval, so it checks often.
                var wait = approvals == nil ? intervals.sleepMax : min(intervals.sleepMax, Self.approvalInterval)
                if let next = tracker.nextStart { wait = min(wait, next - clock.now() + found.lag) }
                if let next = backlog.withLock({ $0.nextTry(after: uptime) }) {
                    wait = min(wait, next - clock.uptime())
                }
                if wait > .zero { await tracker.changed.wait(after: seen, atMost: wait, clock: clock) }
            }
        }
    }

    private func dueRuns(_ approvals: ApprovalRules?) -> DueRuns {
        DueRuns(store: store, actor: actor, approvals: approvals, brake: brake(), countLimit: intervals.countLimit)
    }

    private func start(
        _ start: DueStart, _ backlog: borrowing Mutex<DueBacklog>, _ launches: AsyncStream<Run>.Continuation
    ) async throws {
        let made = try await dueRuns(approvals()).make(start.due, now: start.now)
        for entry in made {
            log(entry)
            if case .run(let run) = entry.made { launch(run, launches) }
        }
        let uptime = clock.uptime()
        let isMoreLeft = backlog.withLock { backlog in
            backlog.settle(start.due, made, at: uptime)
            return !backlog.isEmpty
        }
        // Wake the loop for the next attempt of a delayed occurrence, or for an occurrence that waited for this
        // start.
        if isMoreLeft { tracker.changed.raise() }
    }
}
