import Foundation
import Model
import Sending
import Store

/// Asks for a change of a run's state, and waits until the process that sends it has obeyed.
struct RunChange {
    /// A heartbeat, the answers on their way, and something to spare.
    private static let obeyedWithin: Duration = .seconds(15)
    private static let lookInterval: Duration = .milliseconds(100)

    let store: any AllRoles

    /// The run as it is afterwards. Its state is the one asked for also where its process is still busy.
    func make(_ run: Run, to state: RunState, reason: String?) async throws -> Run {
        try await store.change(run.id, to: state, reason: reason, now: Timestamp(Date()), by: ThisProcess.actor)
        return try await released(run.id)
    }

    private func released(_ id: Int64) async throws -> Run {
        let clock = ContinuousClock()
        let end = clock.now + Self.obeyedWithin
        while true {
            guard let run = try await store.run(id) else { throw Failure(.notFound, "no run \(id) any more") }
            guard let owner = run.owner, !ProcessName.hasEnded(owner) else { return run }
            if clock.now >= end {
                Console.note("\(ProcessName.shown(owner)) was told, and still waits for answers on their way")
                return run
            }
            try await Task.sleep(for: Self.lookInterval)
        }
    }
}
