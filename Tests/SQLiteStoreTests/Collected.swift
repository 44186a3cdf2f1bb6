import Synchronization

/// What a callback was given, in order.
final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func add(_ more: [Element]) { elements.withLock { $0 += more } }

    var all: [Element] { elements.withLock { $0 } }
}
