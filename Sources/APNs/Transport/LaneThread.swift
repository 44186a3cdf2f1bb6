import CCurl
import Glibc

/// The one bridge between tasks and a lane's blocking loop: the loop gets a thread of its own, so that it never holds
/// one of the threads Swift's tasks share.
enum LaneThread {
    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Suspends until `body` has returned on its own thread. Nil: the system gives no thread.
    static func run<Value: Sendable>(named name: String, _ body: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
            let work = Work {
                fanfare_curl_name_thread(name)
                blockSignals()
                let value = body()
                continuation.resume(returning: value)
            }
            if !start(work) { continuation.resume(returning: nil) }
        }
    }

    private static func start(_ work: Work) -> Bool {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread: pthread_t = 0
        let retained = Unmanaged.passRetained(work)
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            }, retained.toOpaque())
        if code != 0 { retained.release() }
        return code == 0
    }

    /// Signals belong to the other threads; and a write to a closed connection must not raise SIGPIPE here.
    private static func blockSignals() {
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
