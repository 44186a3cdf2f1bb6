import Synchronization

/// What happened, in order, from several tasks.
final class Notes: Sendable {
    private let state = Mutex<[String]>([])

    var all: [String] { state.withLock { $0 } }

    func add(_ note: String) { state.withLock { $0.append(note) } }
}
