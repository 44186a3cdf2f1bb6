import Foundation
import Logging
import Model
import Store
import Synchronization
import UnixSignals
import Sending

/// Carries out a run with progress on standard error, obeying SIGINT, SIGTERM and SIGHUP.
struct Broadcast: Sendable {
    let store: any AllRoles
    let sender: Pipeline.Sender
    let logger: Logger

    private enum Event {
        case ended(RunEnd)
        case other
    }

    /// The first signal stops the run in good order, the second one at once.
    func execute(_ run: Run) async throws -> RunEnd {
        // A terminal that goes away is no reason to leave anything in doubt.
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let stop = StopSwitch()
        let (started, startedContinuation) = AsyncStream.makeStream(of: RunControl.self)
        return try await withThrowingTaskGroup(of: Event.self) { group in
            group.addTask {
                defer { startedContinuation.finish() }
                let end = try await pipeline.execute(run, as: ThisProcess.sender) { control, _ in
                    stop.attach(control)
                    startedContinuation.yield(control)
                }
                return .ended(end)
            }
            group.addTask {
                for await control in started { await ProgressPrinter(control: control).print() }
                return .other
            }
            group.addTask {
                await obey(signals, stop)
                return .other
            }
            while let event = try await group.next() {
                guard case .ended(let end) = event else { continue }
                group.cancelAll()
                return end
            }
            throw CancellationError()
        }
    }

    private var pipeline: Pipeline {
        Pipeline(
            store: store, sender: sender, clock: .system, jitter: { Double.random(in: 0...1) }, logger: logger)
    }

    private func obey(_ signals: UnixSignalsSequence, _ stop: StopSwitch) async {
        var isSecond = false
        for await _ in signals {
            if isSecond { Self.leaveAtOnce() }
            isSecond = true
            Console.note(
                "stopping: nothing more is sent, waiting for the answers on their way; once more to stop at once")
            stop.ask()
        }
    }

    /// As safe as a crash: what is on its way is in doubt, and the next start says so. `_exit`, because threads that
    /// use the libraries must not see them being taken down.
    private static func leaveAtOnce() -> Never {
        Console.note("stopped at once; the next start puts in order what was on its way")
        _exit(ExitStatus.tryAgain.rawValue)
    }
}

/// A stop that was asked for, also before there was a run to stop.
private final class StopSwitch: Sendable {
    private let state = Mutex((control: RunControl?.none, isAsked: false))

    func attach(_ control: RunControl) {
        let isAsked = state.withLock { state in
            state.control = control
            return state.isAsked
        }
        if isAsked { control.stop(.stopRequested) }
    }

    func ask() {
        let control = state.withLock { state in
            state.isAsked = true
            return state.control
        }
        control?.stop(.stopRequested)
    }
}
