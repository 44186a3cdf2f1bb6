import Logging
import Model
import Platform
import Store

extension Pipeline {
    /// Returns the end of a run that this sender has released although the response was lost. Returns `nil` if the run
    /// is not in the state that the sender would have left it in.
    func released(_ run: Run, _ control: RunControl) async throws -> RunEnd? {
        guard let left = try await store.run(run.id), left.owner == nil else { return nil }
        let reason = control.decision.reason
        switch reason {
        case nil: return RunEnd(left)
        case .stateChanged: return RunEnd(left) ?? .stoppedEarly
        // The pause must be recorded, so that no other sender repeats the faulty requests.
        case .breaker, .environmentMismatch:
            guard left.state != .running, left.state != .scheduled else { return nil }
            return reason.flatMap(RunEnd.init(leftFor:))
        default: return reason.flatMap(RunEnd.init(leftFor:)) ?? .stoppedEarly
        }
    }
}

/// Recovers the deliveries that dead senders left in flight, and the leases that this sender has forgotten.
extension Pipeline {
    var recovery: Recovery { Recovery(store: store, journals: sender.journals, clock: clock) }

    func takeoverHook(of run: Run, _ owner: String, _ control: RunControl) -> TakeoverHook {
        TakeoverHook {
            let counts = try await recovery.recoverLost(run, heldBy: owner)
            guard counts.leases > 0 else { return }
            logger.warning(
                "leases of dead senders taken over",
                metadata: .facts([.run: "\(run.id)", .reason: "\(counts.summary)"]))
            control.progress.changed.raise()
        }
    }

    func recoverForgotten(_ leases: Set<Int64>, of run: Run, _ owner: String, _ control: RunControl) async throws {
        let counts = try await recovery.recoverForgotten(leases, of: run, by: owner)
        guard counts.leases > 0 else { return }
        logger.warning(
            "the server still lists leases that this sender has settled: recovered as in doubt",
            metadata: .facts([.run: "\(run.id)", .reason: "\(counts.summary)"]))
        control.progress.changed.raise()
    }

    /// Reopens the deliveries that a wrong host or topic refused, if a sender ended before it reopened them.
    func reopenLeftMismatched(_ run: Run, _ owner: String) async throws {
        let hasPaused = try await store.events(run: run.id).contains { $0.kind == EventKind.runPaused.rawValue }
        guard hasPaused else { return }
        for counts in try await store.mismatchCounts(run: run.id) where OutcomePolicy.isMismatch(counts) {
            _ = try await store.reopenMismatched(run: run.id, counts.environment, owner: owner, now: clock.now())
        }
    }
}
