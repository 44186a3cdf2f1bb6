import Engine
import Foundation
import Model

extension EngineClock {
    /// The machine's own time.
    static let system = EngineClock(
        now: { Timestamp(Date()) },
        sleep: { duration in
            // Ends early only when the task is cancelled, and whoever sleeps looks at that itself.
            try? await Task.sleep(for: duration)
        })
}
