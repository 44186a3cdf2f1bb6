import Foundation
import Testing

/// What a test waits for that no signal tells of.
package enum Patience {
    /// Looks again and again until the condition holds. Throws after the limit, with the reason.
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
