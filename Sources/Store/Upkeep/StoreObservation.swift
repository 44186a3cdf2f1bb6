package import Model

/// What goes on in a store at one moment, for metrics: cheap to ask for, whatever the store holds.
package struct StoreObservation: Hashable, Sendable {
    /// A run that is not over.
    package struct Queue: Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        /// How long ago the first of those that wait for a time was due; zero while none is.
        package var overdue: Duration

        package init(run: Int64, campaign: String, pending: Int, leased: Int, overdue: Duration) {
            self.run = run
            self.campaign = campaign
            self.pending = pending
            self.leased = leased
            self.overdue = overdue
        }
    }

    /// Without test runs.
    package var runs: [RunState: Int]
    package var queues: [Queue]
    /// Of the write-ahead log.
    package var logBytes: Int

    package init(runs: [RunState: Int], queues: [Queue], logBytes: Int) {
        self.runs = runs
        self.queues = queues
        self.logBytes = logBytes
    }
}
