import Logging
import Model
import Sending
import Store

/// Logs each run whose row cannot be read, once. The daemon does not touch such a run, and continues with all others.
struct UnreadableRunsWatch {
    private static let lookEvery: Duration = .seconds(60)

    private let store: any RunLog
    private let logger: Logger
    private var told: Set<UnreadableRun> = []
    private var next: Duration = .zero

    init(store: any RunLog, logger: Logger) {
        self.store = store
        self.logger = logger
    }

    mutating func look(at uptime: Duration) async throws {
        guard uptime >= next else { return }
        next = uptime + Self.lookEvery
        for run in try await store.unreadableRuns() where told.insert(run).inserted {
            logger.error(
                "a run cannot be read, and is skipped",
                metadata: .facts([.run: "\(run.run)", .campaign: "\(run.campaign)", .error: "\(run.error)"]))
        }
    }
}
