import Dispatch
import Foundation
import Synchronization

/// Exits at the next SIGINT or SIGTERM, whatever the process does then. No task takes part, because a command may wait
/// for a reader of its output that has stopped reading.
enum SecondSignal {
    private static let sources = Mutex<[any DispatchSourceSignal]>([])

    /// Call this at the first signal.
    ///
    /// - Parameter note: printed before the exit.
    static func exits(_ note: String? = nil) {
        sources.withLock { sources in
            guard sources.isEmpty else { return }
            let queue = DispatchQueue(label: "fanfare.second-signal")
            sources = [SIGTERM, SIGINT].map { number in
                let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
                source.setEventHandler {
                    if let note { BriefNote.print(note) }
                    ThisProcess.exitImmediately(ExitStatus.tryAgain.rawValue)
                }
                source.resume()
                return source
            }
        }
    }
}
