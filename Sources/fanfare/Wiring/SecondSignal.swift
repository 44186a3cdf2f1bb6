import Dispatch
import Foundation
import Synchronization
import UnixSignals

/// Exits at the next SIGINT or SIGTERM, whatever the process does then. No task takes part, because a command may wait
/// for a reader of its output that has stopped reading.
enum SecondSignal {
    private struct State {
        var sources: [any DispatchSourceSignal] = []
        /// The number of pieces of work in progress that the first signal stops. A demo plays commands within its own.
        var works = 0
    }

    private static let state = Mutex(State())

    /// Traps signals for work that the first one stops. Call ``workEnded()`` after the work.
    static func first(of signals: UnixSignal...) async -> UnixSignalsSequence {
        workBegins()
        return await UnixSignalsSequence(trapping: signals)
    }

    /// Leaves signals to the work, if earlier work of this process has ended. A demo plays several commands.
    static func workBegins() {
        state.withLock { state in
            state.works += 1
            guard state.works == 1 else { return }
            for source in state.sources { source.cancel() }
            state.sources = []
        }
    }

    /// Lets the next signal exit. A signal that was trapped does not get its default action back.
    static func workEnded() {
        let isLast = state.withLock { state in
            state.works -= 1
            return state.works == 0
        }
        if isLast { exits() }
    }

    /// Call this at the first signal.
    ///
    /// - Parameters:
    ///   - note: printed before the exit.
    ///   - promise: printed as soon as the next signal exits. A signal before that may be lost.
    static func exits(_ note: String? = nil, promising promise: String? = nil) {
        state.withLock { state in
            guard state.sources.isEmpty else { return }
            let queue = DispatchQueue(label: "fanfare.second-signal")
            let registering = DispatchGroup()
            state.sources = [SIGTERM, SIGINT].map { number in
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler {
                    if let note { BriefNote.print(note) }
                    ThisProcess.exitImmediately(ExitStatus.tryAgain.rawValue)
                }
                registering.enter()
                source.setRegistrationHandler { registering.leave() }
                source.resume()
                return source
            }
            if let promise { registering.notify(queue: queue) { BriefNote.print(promise) } }
        }
    }

    /// Call this at the first signal to a process that sends, after its sending was told to stop.
    static func exitsWhileSending() {
        // As safe as a crash: requests in flight are in doubt, and the next start says so.
        exits(
            "stopped immediately; the next start recovers the requests in flight",
            promising: "stopping: nothing more is sent, waiting for the requests in flight; press Ctrl-C again to stop "
                + "immediately")
    }
}
