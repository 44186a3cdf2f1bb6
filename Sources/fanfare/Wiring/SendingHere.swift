import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Sending
import Store

/// Sends runs of one app from this process, or follows the daemon that does, and leaves with the report.
struct SendingHere: Sendable {
    private let session: Session
    private let sender: Pipeline.Sender
    private let logger: Logger

    /// Loads the app's credential; nothing is sent yet.
    init(_ session: Session, topic: String, _ logger: Logger) throws {
        self.session = session
        self.logger = logger
        sender = try Pipeline.Sender(session.configuration.app(for: topic), logger: logger)
    }

    /// Sends the run in this process.
    func send(_ run: Run) async throws -> RunEnd {
        try await Broadcast(store: session.store, sender: sender, logger: logger).execute(run)
    }

    /// Brings the run to its end, prints its report, delivers webhooks, and throws what the end says.
    ///
    /// - Parameter wait: see ``ExecuteRun``.
    func execute(_ run: Run, wait: Bool?, json: Bool) async throws {
        let webhooks = try await WebhookDispatcher.registered(session, logger: logger)
        let execution = ExecuteRun(runs: session.runs, observer: .console, wait: wait) { run in try await send(run) }
        guard let end = try await execution.execute(run) else { return }
        let report = try await ReportRun(store: session.store).report(run)
        Console.print(json ? try JSONOutput.text(ReportResult(report)) : ReportText(report: report).text)
        try await webhooks.drain(within: WebhookDispatcher.lastWait)
        if let failure = end.failure(of: run) { throw failure }
    }
}

extension ExecuteRun.Observer {
    /// Notes and progress on standard error.
    static let console = ExecuteRun.Observer(
        note: { Console.note($0) },
        watching: { operation in
            let control = RunControl(counts: DeliveryCounts(), isFrozen: false)
            return try await withThrowingTaskGroup(of: RunEnd??.self) { group in
                group.addTask {
                    await ProgressPrinter(control: control).print()
                    return nil
                }
                defer { group.cancelAll() }
                return try await operation { control.observed($0) }
            }
        })
}
