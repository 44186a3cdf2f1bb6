import Campaigns
import Model
import Synchronization

/// The threads for requests that read texts of files. Checking the largest text takes up to 250 ms. At most two texts
/// are read at a time; later ones wait. A stop does not wait for them: it has a thread of its own.
enum TextThreads {
    private static let shared = QueueThreads(["text-1", "text-2"])
    private static let stops = QueueThreads(["stop"])

    /// Performs the work of a route, on these threads if the route declares that it reads texts. `undeclared` records
    /// any other route that reads a text.
    static func serve<Value: Sendable>(
        _ route: String, _ permission: AccessRole.Permission?, readsTexts: Bool, undeclared: UndeclaredTexts,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        if readsTexts {
            let isStop = permission == .halt || permission == .lift
            return try await withTaskExecutorPreference(isStop ? stops : shared, operation: work)
        }
        return try await TextWork.$reader.withValue(TextWork.Reader { undeclared.note(route) }, operation: work)
    }
}

/// The routes that have read a file's text without declaring it. Each is a bug, because its texts are read on the
/// threads that send pushes. The tests of the pages and the API expect none.
final class UndeclaredTexts: Sendable {
    private let noted = Mutex<Set<String>>([])

    var routes: [String] { noted.withLock { $0.sorted() } }

    func note(_ route: String) {
        noted.withLock { _ = $0.insert(route) }
    }
}
