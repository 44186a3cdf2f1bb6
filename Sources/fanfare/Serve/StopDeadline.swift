import Dispatch
import Foundation
import Logging
import Synchronization

/// Ends the process a fixed time after the first SIGTERM or SIGINT, even if the graceful stop has not finished.
///
/// No task uses the signal's queue or the waiting thread. The process therefore ends even if every thread of the
/// cooperative pool is blocked. Like `kill -9`, this loses nothing: a sender's journal holds the requests in flight,
/// and the next start recovers them. The exit status is 0, because the stop was asked for.
final class StopDeadline {
    /// The time limit of a graceful stop. It leaves a margin below the documented 10 s.
    static let limit: Duration = .seconds(8)

    private let sources: [any DispatchSourceSignal]
    private let isArmed = Atomic(false)

    /// Starts to observe the signals. Call this just before the graceful stop observes them too.
    init(_ limit: Duration = StopDeadline.limit, logger: Logger) {
        let queue = DispatchQueue(label: "fanfare.stop")
        sources = [SIGTERM, SIGINT].map { DispatchSource.makeSignalSource(signal: $0, queue: queue) }
        for source in sources {
            source.setEventHandler { [weak self] in self?.arm(limit, logger) }
            source.resume()
        }
    }

    private func arm(_ limit: Duration, _ logger: Logger) {
        guard isArmed.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else { return }
        let thread = Thread {
            Thread.current.name = "stop-deadline"
            Thread.sleep(forTimeInterval: limit / .seconds(1))
            BriefNote.say {
                logger.warning("stopped before all work had finished; the next start recovers the requests in flight")
            }
            ThisProcess.exitImmediately(ExitStatus.done.rawValue)
        }
        thread.start()
    }
}
