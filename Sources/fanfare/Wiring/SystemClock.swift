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

enum ThisProcess {
    /// Names this process to others that look at a run: host, process id and start.
    static let owner = "\(ProcessInfo.processInfo.hostName):\(ProcessInfo.processInfo.processIdentifier):\(startedAt)"
    private static let startedAt = Timestamp(Date()).milliseconds

    /// Who is running the command, for the record.
    static var actor: String { "\(NSUserName()) (uid \(getuid()))" }
}
