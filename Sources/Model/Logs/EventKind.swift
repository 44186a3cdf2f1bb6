/// What an entry of the audit trail records, stored as its word and shown by `fanfare audit`.
package enum EventKind: String, Hashable, Sendable, Codable, CaseIterable {
    case runCreated = "run_created"
    /// A process took the run to send it.
    case runClaimed = "run_claimed"

    // A run has entered a state: `run_` and the state's word, see ``entered(_:)``.
    case runScheduled = "run_scheduled"
    case runRunning = "run_running"
    case runPaused = "run_paused"
    case runFinished = "run_finished"
    case runCancelled = "run_cancelled"
    case runFailed = "run_failed"
    case runMissed = "run_missed"

    /// A person started a run in spite of a guard.
    case guardOverridden = "guard_overridden"
    /// The daemon took over changed campaigns and templates.
    case filesRead = "files_read"
    /// A feed had more new items at once than `max_new` allows: none was sent.
    case feedHeld = "feed_held"
    /// A webhook's message was undeliverable for too long and was dropped.
    case webhookGivenUp = "webhook_given_up"
    case devicesImported = "devices_imported"
    case devicesExported = "devices_exported"
    case devicesPruned = "devices_pruned"
    case outcomesPruned = "outcomes_pruned"
    case backedUp = "backed_up"

    /// The kind that records that a run has entered a state.
    package static func entered(_ state: RunState) -> EventKind {
        switch state {
        case .scheduled: .runScheduled
        case .running: .runRunning
        case .paused: .runPaused
        case .finished: .runFinished
        case .cancelled: .runCancelled
        case .failed: .runFailed
        case .missed: .runMissed
        }
    }
}
