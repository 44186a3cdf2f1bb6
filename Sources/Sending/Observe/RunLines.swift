package import Logging
package import Model
import Senders
package import Store
import Synchronization

/// The log lines about one process's work on a run: one when the process claims the run, and one when its work ends.
package final class RunLines: Sendable {
    private let run: Run
    private let clock: WallClock
    private let logger: Logger
    private let work = Mutex<(control: RunControl, since: Duration)?>(nil)

    package init(_ run: Run, clock: WallClock, logger: Logger) {
        self.run = run
        self.clock = clock
        self.logger = logger
    }

    /// Logs that the process has claimed the run. A second call replaces the control and logs nothing.
    package func began(_ control: RunControl) {
        let isFirst = work.withLock { work in
            defer { work = (control, work?.since ?? clock.uptime()) }
            return work == nil
        }
        guard isFirst else { return }
        var facts = subject
        let counts = control.progress.counts
        if counts.audience > 0 {
            facts[.audience] = "\(counts.audience)"
            facts[.left] = "\(counts.pending + counts.leased)"
        }
        logger.info("run started", metadata: facts)
    }

    package func ended(_ end: RunEnd) {
        var facts = subject
        facts[.end] = "\(end.word)"
        if let reason = end.reason { facts[.reason] = "\(reason)" }
        if let (control, since) = work.withLock(\.self) {
            let counts = control.progress.counts
            facts[.audience] = "\(counts.audience)"
            facts[.accepted] = "\(counts.accepted)"
            facts[.rejected] = "\(counts.rejected)"
            facts[.unknown] = "\(counts.unknown)"
            facts[.suppressed] = "\(counts.suppressed)"
            facts[.left] = "\(counts.pending + counts.leased)"
            facts[.seconds] = "\(((clock.uptime() - since).inSeconds * 10).rounded() / 10)"
        }
        switch end {
        case .noDeviceReached, .unsuccessful: ServiceMetrics.unsuccessful(campaign: run.campaign)
        default: break
        }
        logger.log(level: end.logLevel, "\(end.logMessage)", metadata: facts)
    }

    /// Logs that the work ended with an error of this process.
    package func failed(_ error: any Error) { logger.failed(error, "run not carried out", metadata: subject) }

    private var subject: Logger.Metadata {
        .facts([.run: "\(run.id)", .campaign: "\(run.campaign)", .occurrence: "\(run.occurrence)"])
    }
}

extension Logger {
    /// Logs an error of work that is retried. A temporarily unavailable store is logged as a warning.
    package func failed(_ error: any Error, _ message: Logger.Message, metadata: Logger.Metadata) {
        var facts = metadata
        facts[.error] = "\(error)"
        guard (error as? StoreError)?.isPassing == true else { return self.error(message, metadata: facts) }
        warning("the store accepts no writes now; sending waits, and nothing is lost", metadata: facts)
    }
}

extension RunEnd {
    /// The end as one word, for the log.
    package var word: String {
        switch self {
        case .finished: "finished"
        case .noDeviceReached: "no_device_reached"
        case .unsuccessful: "unsuccessful"
        case .stoppedEarly: "stopped_early"
        case .waiting: "waiting"
        case .cancelled: "cancelled"
        case .paused: "paused"
        case .busy: "busy"
        case .unreachable: "unreachable"
        case .credentialRefused: "credential_refused"
        case .breakerOpen: "breaker_open"
        case .halted: "halted"
        case .awaitingApproval: "awaiting_approval"
        case .late: "late"
        case .stopped: "stopped"
        case .missed: "missed"
        case .refused: "refused"
        case .failed: "failed"
        }
    }

    /// The reason, for a person. `nil` if ``word`` already says everything.
    package var reason: String? {
        switch self {
        case .finished, .stoppedEarly, .cancelled: nil
        case .waiting(let moment): "the rest is due at \(moment.iso8601)"
        case .paused(let person, let reason): "by \(person)" + (reason.map { ": \($0)" } ?? "")
        case .busy(let owner, _): "\(ProcessName.shown(owner)) owns the run"
        case .stopped(let order): order.refusal
        case .unreachable(let reason), .credentialRefused(let reason), .breakerOpen(let reason), .halted(let reason),
            .awaitingApproval(let reason), .late(let reason), .missed(let reason), .refused(let reason),
            .failed(let reason), .noDeviceReached(let reason), .unsuccessful(let reason):
            reason
        }
    }

    fileprivate var logMessage: String {
        switch self {
        case .finished, .stoppedEarly, .waiting, .cancelled, .paused, .busy: "run ended"
        case .noDeviceReached, .unsuccessful: "run ended without success"
        case .unreachable, .credentialRefused: "run paused"
        case .breakerOpen, .halted, .awaitingApproval, .late, .stopped: "run waits for a person"
        case .missed, .refused: "run not sent"
        case .failed: "run failed"
        }
    }

    fileprivate var logLevel: Logger.Level {
        switch self {
        case .finished, .stoppedEarly, .waiting, .cancelled, .paused: .info
        // Callers retry every few seconds.
        case .busy: .debug
        case .unreachable, .breakerOpen, .halted, .awaitingApproval, .late, .stopped, .missed, .refused,
            .noDeviceReached,
            .unsuccessful:
            .warning
        case .credentialRefused, .failed: .error
        }
    }
}
