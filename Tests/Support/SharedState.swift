import Synchronization

/// A flag that tells other tasks of a test that the test is over.
package final class Flag: Sendable {
    private let state = Mutex(false)

    package init() {}

    package var isUp: Bool { state.withLock { $0 } }

    package func raise() { state.withLock { $0 = true } }
}

/// A list that several tasks append to, for example the arguments of a callback, in order.
package final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    package init() {}

    package func add(_ more: [Element]) { elements.withLock { $0 += more } }
    package func add(_ one: Element) { elements.withLock { $0.append(one) } }

    package var all: [Element] { elements.withLock { $0 } }
}

/// A state that tasks can wait for.
package final class Watched<State: Sendable>: Sendable {
    private struct Content {
        var state: State
        var next = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let content: Mutex<Content>

    package init(_ state: State) {
        content = Mutex(Content(state: state))
    }

    /// Changes the state. All waiting tasks then check their conditions again.
    @discardableResult package func change<Value: Sendable>(_ body: @Sendable (inout State) -> Value) -> Value {
        let (value, woken) = content.withLock { content in
            let value = body(&content.state)
            defer { content.waiters = [:] }
            return (value, Array(content.waiters.values))
        }
        for waiter in woken { waiter.resume() }
        return value
    }

    /// Returns when the condition holds, or when the task is cancelled, so that a test's time limit can end it.
    package func until(_ condition: @Sendable (State) -> Bool) async {
        let waiter = nextWaiter()
        while !Task.isCancelled, !content.withLock({ condition($0.state) }) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    wait(waiter, continuation) { Task.isCancelled || condition($0) }
                }
            } onCancel: {
                content.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
            }
        }
    }

    /// Returns when the condition holds, even if the task is cancelled. A lane whose run is about to stop must not
    /// return early.
    package func untilUncancelled(_ condition: @Sendable (State) -> Bool) async {
        let waiter = nextWaiter()
        while !content.withLock({ condition($0.state) }) {
            await withCheckedContinuation { continuation in wait(waiter, continuation, unless: condition) }
        }
    }

    private func nextWaiter() -> Int {
        content.withLock { content in
            content.next += 1
            return content.next
        }
    }

    private func wait(
        _ waiter: Int, _ continuation: CheckedContinuation<Void, Never>, unless condition: (State) -> Bool
    ) {
        let holds = content.withLock { content in
            if condition(content.state) { return true }
            content.waiters[waiter] = continuation
            return false
        }
        if holds { continuation.resume() }
    }
}
