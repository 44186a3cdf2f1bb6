package import Model

/// Time as the engine sees it; a parameter, so that a rehearsal or a test brings its own.
package struct WallClock: Sendable {
    package let now: @Sendable () -> Timestamp
    /// Returns early when the task is cancelled.
    package let sleep: @Sendable (Duration) async -> Void

    package init(now: @escaping @Sendable () -> Timestamp, sleep: @escaping @Sendable (Duration) async -> Void) {
        self.now = now
        self.sleep = sleep
    }
}
