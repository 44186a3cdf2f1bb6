import Foundation
import Model
import Store
import Sending

/// Watches a run that another process carries out, as if it were carried out here.
struct RunFollower: Sendable {
    private static let lookEvery: Duration = .milliseconds(200)

    let store: any AllRoles

    /// How it ended; nil when nobody has it in hand any more, so that somebody else must go on with it.
    ///
    /// - Parameter isCared: whether somebody will take it up; asked while nobody has it.
    func follow(_ id: Int64, isCared: @escaping @Sendable () async throws -> Bool) async throws -> RunEnd? {
        let control = RunControl(counts: DeliveryCounts(), isFrozen: false)
        return try await withThrowingTaskGroup(of: RunEnd?.self) { group in
            group.addTask {
                await ProgressPrinter(control: control).print()
                return nil
            }
            defer { group.cancelAll() }
            while true {
                guard let run = try await store.run(id) else { throw EngineError.runVanished(id) }
                control.observed(run.counts)
                if let end = try Self.end(of: run) { return end }
                if run.owner.map(ProcessName.hasEnded) ?? true, try await !isCared() { return nil }
                try await Task.sleep(for: Self.lookEvery)
            }
        }
    }

    private static func end(of run: Run) throws -> RunEnd? {
        switch run.state {
        case .finished: return .finished
        case .cancelled: return .cancelled
        case .scheduled, .running: return nil
        case .missed: throw Failure(.refused, "run \(run.id) was missed: \(run.stateReason ?? "too late")")
        case .failed: throw Failure(.internalError, "run \(run.id) failed: \(run.stateReason ?? "no reason given")")
        case .paused:
            if let person = run.pausedBy { return .paused(by: person, reason: run.stateReason) }
            let reason = run.stateReason ?? "no reason given"
            switch run.halt {
            case .credential: return .credentialRefused(reason)
            case .breaker: return .breakerOpen(reason)
            case .unreachable, nil: return .unreachable(reason)
            }
        }
    }
}
