import Model
import Store

extension RunSuccess {
    /// Finishes a run whose deliveries all have a final state, and records why it is unsuccessful, if it is. A test run
    /// is not judged.
    func finish(_ run: Run, as actor: Actor, in store: any SendingStore, now: Timestamp) async throws {
        var reason: String?
        if !run.isTest {
            let report = try await store.report(run.id)
            let gone = report.rejected.filter { $0.status == 410 }.reduce(0) { $0 + $1.count }
            reason = problem(
                report.counts, suppressed: report.suppressed, gone: gone, attempted: report.suppressedAfterRequest ?? 0,
                mayHaveArrived: report.mayHaveArrived ?? 0)
        }
        try await store.release(
            run.id, by: actor, state: .finished, reason: reason, halt: reason == nil ? nil : .unsuccessful, now: now)
    }
}
