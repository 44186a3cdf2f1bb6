import Dispatch
import Synchronization

/// Threads for requests that read files of others: checking a text of the largest size takes up to a quarter of a second. They are not
/// those of the cooperative pool, which sends pushes, and on which every other request waits. There are two, so that as many
/// texts are read at a time and later ones wait for their turn.
final class TextThreads: TaskExecutor {
    static let shared = TextThreads()

    private let queues = [DispatchQueue(label: "text-1"), DispatchQueue(label: "text-2")]
    private let turn = Atomic(0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let index = turn.wrappingAdd(1, ordering: .relaxed).oldValue & 1
        queues[index].async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Does the work on these threads if the address is of campaigns, templates or segments, whose texts are large.
    static func whereNeeded<Value: Sendable>(
        _ path: String, _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard isNeeded(path) else { return try await work() }
        return try await withTaskExecutorPreference(shared, operation: work)
    }

    /// - Parameter path: as routes are declared.
    static func isNeeded(_ path: String) -> Bool {
        ["/campaigns", "/templates", "/new", "/segments", "/runs/{run}/correct"].contains { path.hasPrefix($0) }
    }
}
