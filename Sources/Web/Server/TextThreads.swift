import Dispatch
import Model
import Synchronization

/// Threads for requests that read files of others: checking a text of the largest size takes up to a quarter of a second.
/// They are not those of the cooperative pool, which sends pushes, and on which every other request waits. There are two, so that as many
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

    /// Carries out the work of a route: on these threads if the route says that it reads texts. Any other route that reads
    /// one is noted in `undeclared`.
    static func serve<Value: Sendable>(
        _ route: String, readsTexts: Bool, undeclared: UndeclaredTexts, _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        if readsTexts { return try await withTaskExecutorPreference(shared, operation: work) }
        return try await TextWork.$reader.withValue(TextWork.Reader { undeclared.note(route) }, operation: work)
    }
}

/// The routes that have read a text of a file without saying so. Each is a mistake of ours: its texts are read on the threads
/// that send pushes. Tests of pages and API end with none.
final class UndeclaredTexts: Sendable {
    private let noted = Mutex<Set<String>>([])

    var routes: [String] { noted.withLock { $0.sorted() } }

    func note(_ route: String) {
        noted.withLock { _ = $0.insert(route) }
    }
}
