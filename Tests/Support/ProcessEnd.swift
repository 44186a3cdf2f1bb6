package import Foundation

extension Process {
    /// How long a test waits for a process of its own. Slow machines need a good part of it.
    package static let longest: Duration = .seconds(240)

    /// Waits for the end of the process, and kills it after the limit: a process that hangs fails its test, and never
    /// holds up the others.
    package func waitForEnd(killingAfter limit: Duration = longest) {
        let overdue = killed(after: limit)
        waitUntilExit()
        overdue.cancel()
    }

    /// Kills the process after the limit unless the item is cancelled: what is read from it ends then as well.
    package func killed(after limit: Duration = longest) -> DispatchWorkItem {
        let pid = processIdentifier
        let overdue = DispatchWorkItem { kill(pid, SIGKILL) }
        DispatchQueue.global().asyncAfter(
            deadline: .now() + .seconds(Int(limit.components.seconds)), execute: overdue)
        return overdue
    }
}
