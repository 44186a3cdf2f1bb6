import Synchronization

/// A state that can be waited for.
final class Watched<State: Sendable>: Sendable {
    private let content: Mutex<(state: State, waiters: [CheckedContinuation<Void, Never>])>

    init(_ state: State) {
        content = Mutex((state, []))
    }

    /// Everybody who waits looks again.
    @discardableResult func change<Value: Sendable>(_ body: @Sendable (inout State) -> Value) -> Value {
        let (value, woken) = content.withLock { content in
            let value = body(&content.state)
            defer { content.waiters = [] }
            return (value, content.waiters)
        }
        for waiter in woken { waiter.resume() }
        return value
    }

    func until(_ condition: @Sendable (State) -> Bool) async {
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
