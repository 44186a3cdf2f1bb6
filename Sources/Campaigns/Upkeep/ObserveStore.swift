package import Model
package import Store

/// What goes on in a store at one moment, for metrics and health: cheap to ask for, whatever the store holds.
package struct ObserveStore: Sendable {
    private let store: any StoreUpkeep

    package init(store: any StoreUpkeep) {
        self.store = store
    }

    package func observe(now: Timestamp) async throws -> ObservationResult {
        ObservationResult(try await store.observation(now: now))
    }
}

package struct ObservationResult: Codable, Hashable, Sendable {
    /// A run that is not over.
    package struct Queue: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        /// How long ago the first of those that wait for a time was due; zero while none is.
        package var overdueSeconds: Double
    }

    /// Without test runs.
    package var runs: [RunState: Int]
    package var queues: [Queue]
    /// Of what the store has written and not yet put in its place.
    package var logBytes: Int

    package init(_ observation: StoreObservation) {
        runs = observation.runs
        queues = observation.queues.map { queue in
            Queue(
                run: queue.run, campaign: queue.campaign, pending: queue.pending, leased: queue.leased,
                overdueSeconds: queue.overdue.inSeconds)
        }
        logBytes = observation.logBytes
    }
}
