package import Logging
package import Model
package import Senders
package import Sending
package import Store

/// A ``Pipeline`` whose runs each have their own lanes, for tests and benchmarks that need no other parts.
package struct LonePipeline: Sendable {
    private let store: any SendingStore
    private let sender: SendingSetup
    private let clock: WallClock
    private let jitter: @Sendable () -> Double
    private let logger: Logger
    private let registration: SenderRegistration?

    package init(
        store: any SendingStore, sender: SendingSetup, clock: WallClock, jitter: @escaping @Sendable () -> Double,
        logger: Logger, registration: SenderRegistration? = nil
    ) {
        self.store = store
        self.sender = sender
        self.clock = clock
        self.jitter = jitter
        self.logger = logger
        self.registration = registration
    }

    private func pipeline(on lanes: LaneGroup) -> Pipeline {
        Pipeline(store: store, lanes: lanes, clock: clock, jitter: jitter, logger: logger, registration: registration)
    }

    /// Sends a recorded run, see ``Pipeline/execute(_:as:idleLimit:watch:)``.
    package func execute(
        _ run: Run, as actor: Actor, idleLimit: Duration? = nil,
        watch: @escaping @Sendable (RunControl, LatencyRecorder) -> Void
    ) async throws -> RunEnd {
        let lanes = LaneGroup(sender: sender, clock: clock, jitter: jitter, logger: logger)
        return try await withThrowingTaskGroup(of: RunEnd?.self) { group in
            group.addTask {
                await lanes.run()
                return nil
            }
            group.addTask {
                defer { lanes.close() }
                return try await pipeline(on: lanes).execute(run, as: actor, idleLimit: idleLimit, watch: watch)
            }
            var end: RunEnd?
            for try await result in group { end = end ?? result }
            return end ?? .stoppedEarly
        }
    }
}
