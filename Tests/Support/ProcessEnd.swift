package import Foundation

extension Process {
    /// The maximum time that a test waits for its process. Slow machines need a large part of it.
    package static let longest: Duration = .seconds(240)

    /// Waits for the end of the process, and kills it after the limit. A process that hangs then fails its test and
    /// does not block the others.
    package func waitForEnd(killingAfter limit: Duration = longest) {
        let overdue = killed(after: limit)
        waitUntilExit()
        overdue.cancel()
    }

    /// Kills the process after the limit unless the returned item is cancelled. A read of its output then ends as well.
    package func killed(after limit: Duration = longest) -> DispatchWorkItem {
        let pid = processIdentifier
        let overdue = DispatchWorkItem { kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(
            deadline: .now() + .seconds(Int(limit.components.seconds)), execute: overdue)
        return overdue
    }
}
