import Foundation
import Testing

/// Waits for conditions that no signal reports.
package enum Patience {
    /// Checks the condition repeatedly until it holds. Throws after the limit.
    package static func wait(
        for what: @autoclosure () -> String, limit: Duration = Process.longest, until condition: () throws -> Bool
    ) throws {
        let deadline = ContinuousClock.now + limit
        while try !condition() {
            try #require(ContinuousClock.now < deadline, "still not so after \(limit): \(what())")
            usleep(20_000)
        }
    }
}
