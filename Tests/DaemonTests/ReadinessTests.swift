import Testing

@testable import Daemon

/// Whether a daemon could put on record what it sends. A look at the store would be answered beside any lock, so its own
/// sign of life, which is a write, says so.
@Suite struct `The readiness of a daemon` {
    @Test func `ends while a sign of life waits to be written, and comes back with it`() {
        let tracker = DaemonStatusTracker()
        #expect(tracker.unwritable(at: .seconds(10)) == nil)
        tracker.writes(at: .seconds(10))
        #expect(tracker.unwritable(at: .seconds(11)) == nil)
        #expect(tracker.unwritable(at: .seconds(14)) == "the store has accepted no write for 4s")
        tracker.wrote(fault: nil)
        #expect(tracker.unwritable(at: .seconds(15)) == nil)
    }

    @Test func `stays away after a write that failed, until one succeeds`() {
        let tracker = DaemonStatusTracker()
        tracker.writes(at: .seconds(10))
        tracker.wrote(fault: "locked by another process")
        #expect(tracker.unwritable(at: .seconds(26)) == "locked by another process")
        tracker.writes(at: .seconds(28))
        #expect(tracker.unwritable(at: .seconds(29)) == "locked by another process")
        tracker.wrote(fault: nil)
        #expect(tracker.unwritable(at: .seconds(30)) == nil)
    }
}
