import Dispatch
import Synchronization

extension ServiceManager {
    /// Runs `body`, a part of the start that may take longer than the manager's start timeout. Meanwhile it sends
    /// ``ServiceNotice/extendTimeout(_:)``, from a queue of its own: `body` may block the thread of its task.
    ///
    /// - Parameters:
    ///   - extension: the time within which the manager receives the next notice.
    ///   - limit: the time after which no more notices are sent, so that the manager restarts a start that hangs.
    package func extendingStart<Value>(
        by extension: Duration = .seconds(60), every interval: Duration = .seconds(20),
        atMost limit: Duration = .seconds(3 * 3600), _ body: () async throws -> Value
    ) async rethrows -> Value {
        guard isListening else { return try await body() }
        let left = Mutex(Int(limit / interval))
        let queue = DispatchQueue(label: "fanfare.start")
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler {
            let isDue = left.withLock { left in
                left -= 1
                return left >= 0
            }
            // A manager that does not read also misses the notice that the service is ready, which is an error.
            if isDue { try? send(.extendTimeout(`extension`)) }
        }
        timer.schedule(deadline: .now(), repeating: .microseconds(Int(interval.wholeMicroseconds)))
        timer.activate()
        defer {
            timer.cancel()
            // No notice follows the end of the body.
            queue.sync {}
        }
        return try await body()
    }
}
