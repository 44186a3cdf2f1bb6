import CNGHTTP2
import Glibc

/// A thread outside of those that Swift's tasks share, for work that blocks; its owner joins it, or nobody waits for
/// it.
package struct LoopThread {
    private let handle: pthread_t

    /// The kernel keeps 15 bytes of `name`. The thread takes no signals: a write to a closed socket must not
    /// end the process, and SIGTERM belongs to the main thread.
    init(named name: String, _ body: @escaping @Sendable () -> Void) throws(EventLoopError) {
        var started = pthread_t()
        let box = Unmanaged.passRetained(Body(name: name, run: body))
        let code = pthread_create(&started, nil, { raw in LoopThread.main(raw) }, box.toOpaque())
        guard code == 0 else {
            box.release()
            throw .noThread(code: code)
        }
        handle = started
    }

    /// For work that may take long and that nobody waits for. False: the system gives no thread.
    package static func runDetached(named name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        do throws(EventLoopError) {
            pthread_detach(try LoopThread(named: name, body).handle)
            return true
        } catch {
            return false
        }
    }

    func join() {
        pthread_join(handle, nil)
    }

    var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    private static func main(_ raw: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let raw else { return nil }
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let body = Unmanaged<Body>.fromOpaque(raw).takeRetainedValue()
        fanfare_name_thread(body.name)
        body.run()
        return nil
    }
}
