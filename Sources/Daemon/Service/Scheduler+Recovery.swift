import Logging
import Model
import Platform
import Sending
import Store

extension Scheduler {
    /// Ends what no sender continues: requests that dead senders left in flight in paused and cancelled runs, and
    /// runs that this process could not leave.
    func recover() async throws {
        try await supervisor.keep(.recovery) {
            while !Task.isCancelled {
                await clock.sleep(intervals.recoverEvery)
                guard !Task.isCancelled else { return }
                // First, because an error of another process's run must not delay it.
                try await leaveRunsNotInHand()
                for found in try await senders.recoverAbandoned() { report(found.run, found.recovered) }
            }
        }
    }

    /// Leaves the runs on which this process is recorded although it does not execute them. An error of one run delays
    /// no other.
    private func leaveRunsNotInHand() async throws {
        var failure: (any Error)?
        for run in try await store.runs(of: actor.name) where tracker.hold(run.id) {
            defer { tracker.letGo(run.id) }
            do {
                // The run may have been left since it was listed.
                guard let current = try await store.runs(of: actor.name).first(where: { $0.id == run.id }) else {
                    continue
                }
                report(run.id, try await senders.leave(current))
            } catch StoreError.lostClaim {
                // Another sender has taken over the run.
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    private func report(_ run: Int64, _ recovered: RecoveryCounts) {
        logger.warning("run recovered", metadata: .facts([.run: "\(run)", .reason: "\(recovered.summary)"]))
    }
}
