import Foundation
import Model
import Sending

extension WallClock {
    /// The machine's own time.
    static let system = WallClock(
        now: { Timestamp(Date()) },
        sleep: { duration in
            // Ends early only when the task is cancelled, and whoever sleeps looks at that itself.
            try? await Task.sleep(for: duration)
        })
}
