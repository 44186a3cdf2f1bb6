import Dispatch
import Foundation
import Synchronization

/// Notes that wait for standard error only briefly. It may be a pipe that no process reads, or a stopped terminal, and
/// then neither a signal nor sending may wait for it.
enum BriefNote {
    private static let patience: Duration = .milliseconds(200)
    private static let unsaid = Mutex(0)

    static func print(_ text: String) { say { Console.note(text) } }

    /// Does nothing while an earlier note still waits.
    static func sayIfIdle(_ body: @escaping @Sendable () -> Void) {
        if unsaid.withLock({ $0 == 0 }) { say(body) }
    }

    /// - Parameter body: writes to standard error, on a thread of its own.
    static func say(_ body: @escaping @Sendable () -> Void) {
        let isSaid = DispatchSemaphore(value: 0)
        unsaid.withLock { $0 += 1 }
        let thread = Thread {
            body()
            unsaid.withLock { $0 -= 1 }
            isSaid.signal()
        }
        thread.start()
        _ = isSaid.wait(timeout: .now() + patience / .seconds(1))
    }
}
