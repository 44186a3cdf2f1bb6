package import Logging
import Model
import Senders
import Sending
package import Store

/// A part of the daemon that works for as long as the daemon lives.
package enum DaemonPart: String, Hashable, Sendable, CaseIterable {
    /// Applies the changes of the campaign files.
    case files
    /// Waits to become the coordinator.
    case coordinator
    /// Starts what is due.
    case schedules
    case feeds
    case maintenance
    /// Records reports of apps that were set aside.
    case feedback
    /// Finds runs that wait for a sender, and the stops in force.
    case runs
    /// Recovers what dead senders left in flight.
    case recovery
    case heartbeat
    case webhooks
    /// Reads the files again on request.
    case reload
    /// Notices changed files.
    case watch
    /// Tells the service manager's watchdog that the daemon is alive.
    case watchdog
    /// Reports the daemon's status to the service manager.
    case status
    /// Pages, API, metrics and health checks.
    case http
}

/// The errors that end a daemon. No other error does.
///
/// Each of them means that the daemon has permanently lost its right to the store. Every other error is temporary,
/// unknown or about one run, and ``Supervisor`` tries again.
package enum DaemonEnd {
    /// - Parameter owner: the name of this sender.
    package static func isReason(_ error: any Error, owner: String) -> Bool {
        switch error {
        case let error as SenderError:
            switch error {
            // Another process is the daemon, other senders count this one as dead, or its folder belongs to another
            // machine.
            case .otherDaemon, .registrationLost, .folderCopied: true
            case .noLocks, .senderFolder, .lockFileDamaged, .lockFileBusy: false
            }
        case let error as StoreError:
            switch error {
            // Other senders have taken over what this one sent.
            case .senderLost(let name): name == owner
            // A newer Fanfare has upgraded the store, or the store was moved or replaced. New records in this one
            // would be lost.
            case .newerVersion, .moved, .displaced: true
            default: false
            }
        default: false
        }
    }
}

/// Restarts the parts of a daemon after errors. It logs and counts the error of a part, waits longer each time, and
/// starts the part again. It rethrows only errors in ``DaemonEnd``.
package struct Supervisor: Sendable {
    package static let firstPause: Duration = .seconds(1)
    /// The longest pause. Due work waits no longer than this for a part that has recovered.
    package static let pauseMax: Duration = .seconds(10)
    /// The time after which the same error of a part is logged again.
    package static let repeatAfter: Duration = .seconds(60)

    private let owner: String
    private let clock: WallClock
    private let logger: Logger
    private let before: @Sendable (DaemonPart) throws -> Void

    /// - Parameters:
    ///   - owner: the name of this sender.
    ///   - before: called before each attempt of a part. An error that it throws counts as the part's own.
    package init(
        owner: String, clock: WallClock, logger: Logger,
        before: @escaping @Sendable (DaemonPart) throws -> Void = { _ in }
    ) {
        self.owner = owner
        self.clock = clock
        self.logger = logger
        self.before = before
    }

    /// Repeats `body` until it returns or the task is cancelled. Throws only errors in ``DaemonEnd``.
    ///
    /// Keep state that must survive an error outside `body`.
    ///
    /// - Parameters:
    ///   - pauseMax: the longest pause before another attempt.
    ///   - failed: receives each error.
    package func keep(
        _ part: DaemonPart, pauseMax: Duration = Self.pauseMax, failed: (any Error) -> Void = { _ in },
        _ body: () async throws -> Void
    ) async throws {
        var pause = GrowingPause(first: min(Self.firstPause, pauseMax), max: pauseMax)
        var logged: (text: String, at: Duration)?
        while !Task.isCancelled {
            let began = clock.uptime()
            do {
                try before(part)
                return try await body()
            } catch {
                if Task.isCancelled { return }
                if DaemonEnd.isReason(error, owner: owner) { throw error }
                failed(error)
                // The part worked for a while before this error, so the pauses start again from the first.
                if clock.uptime() - began > pauseMax { pause.reset() }
                ServiceMetrics.failed(part: part.rawValue)
                if logged.map({ $0.text != "\(error)" || clock.uptime() - $0.at >= Self.repeatAfter }) ?? true {
                    logged = ("\(error)", clock.uptime())
                    log(error, of: part, "part of the daemon failed; retrying")
                }
                await clock.sleep(pause.next())
            }
        }
    }

    /// Keeps a part running that finds jobs, and performs each job in a separate child task. The part does not wait
    /// for its jobs. An error of a job ends only that job. Throws only errors in ``DaemonEnd``.
    package func keep<Job: Sendable>(
        _ part: DaemonPart, each carryOut: @escaping @Sendable (Job) async throws -> Void,
        _ body: @escaping @Sendable (AsyncStream<Job>.Continuation) async throws -> Void
    ) async throws {
        let (jobs, found) = AsyncStream.makeStream(of: Job.self)
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                defer { found.finish() }
                try await keep(part) { try await body(found) }
            }
            // When a job throws, the group is cancelled, and the part with it.
            for await job in jobs {
                group.addTask { try await once(part) { try await carryOut(job) } }
            }
        }
    }

    private func once(_ part: DaemonPart, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            if Task.isCancelled { return }
            if DaemonEnd.isReason(error, owner: owner) { throw error }
            ServiceMetrics.failed(part: part.rawValue)
            log(error, of: part, "a job of the daemon failed")
        }
    }

    private func log(_ error: any Error, of part: DaemonPart, _ message: Logger.Message) {
        logger.failed(error, message, metadata: .facts([.part: "\(part.rawValue)"]))
    }
}

/// Pauses between attempts, each twice as long as the previous one, up to a maximum.
struct GrowingPause: Hashable, Sendable {
    let first: Duration
    let max: Duration
    private var upcoming: Duration

    init(first: Duration, max: Duration) {
        self.first = first
        self.max = max
        upcoming = first
    }

    /// Returns the pause after one more failure.
    mutating func next() -> Duration {
        defer { upcoming = min(upcoming * 2, max) }
        return upcoming
    }

    mutating func reset() { upcoming = first }
}
