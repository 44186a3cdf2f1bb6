import Synchronization

/// Tells other tasks of a test that it is over.
package final class Flag: Sendable {
    private let state = Mutex(false)

    package init() {}

    package var isUp: Bool { state.withLock { $0 } }

    package func raise() { state.withLock { $0 = true } }
}

/// What a callback was given, or what happened, in order, from several tasks.
package final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    package init() {}

    package func add(_ more: [Element]) { elements.withLock { $0 += more } }
    package func add(_ one: Element) { elements.withLock { $0.append(one) } }

    package var all: [Element] { elements.withLock { $0 } }
}

/// A state that can be waited for.
package final class Watched<State: Sendable>: Sendable {
    private let content: Mutex<(state: State, waiters: [CheckedContinuation<Void, Never>])>

    package init(_ state: State) {
        content = Mutex((state, []))
    }

    /// Everybody who waits looks again.
    @discardableResult package func change<Value: Sendable>(_ body: @Sendable (inout State) -> Value) -> Value {
        let (value, woken) = content.withLock { content in
            let value = body(&content.state)
            defer { content.waiters = [] }
            return (value, content.waiters)
        }
        for waiter in woken { waiter.resume() }
        return value
    }

    package func until(_ condition: @Sendable (State) -> Bool) async {
        while !content.withLock({ condition($0.state) }) {
            await withCheckedContinuation { continuation in
                let holds = content.withLock { content in
                    if condition(content.state) { return true }
                    content.waiters.append(continuation)
                    return false
                }
                if holds { continuation.resume() }
            }
        }
    }
}
