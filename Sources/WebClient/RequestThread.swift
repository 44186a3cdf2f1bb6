import Foundation

/// The bridge between a task and a blocking request: a thread of its own, so that a slow server never holds one of the
/// threads that tasks share.
enum RequestThread {
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                blockSignals()
                continuation.resume(returning: body())
            }
            thread.name = "web-request"
            thread.start()
        }
    }

    /// Signals belong to the other threads; and a write to a closed connection must not raise SIGPIPE here.
    private static func blockSignals() {
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
