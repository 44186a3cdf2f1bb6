import Foundation
import Logging
import Model
import Store
import Daemon
import Sending
import Campaigns

/// What `run --due` did, run by run.
enum DueReport {
    static func run(_ session: Session, _ logger: Logger, json: Bool) async throws {
        try await session.recoverAbandoned()
        if let daemon = try await session.runs.daemon() {
            Console.note("the daemon (\(ProcessName.shown(daemon.owner))) does this already")
            if json { Console.print(try JSONOutput.text(DueResult(ended: []))) }
            return
        }
        let webhooks = try await WebhookDispatcher.registered(session, logger: logger)
        let ended = try await DuePass(session, logger: logger).execute()
        Console.print(json ? try JSONOutput.text(DueResult(ended: ended)) : text(ended))
        try await webhooks.drain(within: WebhookDispatcher.lastWait)
        try leave(ended)
    }

    private static func text(_ ended: [DueRun]) -> String {
        guard !ended.isEmpty else { return "nothing is due" }
        return ended.map { entry in
            let (run, counts) = (entry.run, entry.run.counts)
            var words = run.state.rawValue
            if case .waiting(let moment) = entry.end { words += ", the rest is due at \(moment.shown)" }
            return "run \(run.id): \(run.campaign), occurrence \(run.occurrence): \(words); "
                + "\(counts.accepted.grouped) of \(counts.audience.grouped) accepted"
        }.joined(separator: "\n")
    }

    /// The most serious end decides; what is left for the next time is no failure.
    private static func leave(_ ended: [DueRun]) throws {
        for entry in ended {
            if case .credentialRefused = entry.end, let failure = entry.end.failure(of: entry.run) { throw failure }
        }
        for entry in ended {
            switch entry.end {
            case .unreachable, .breakerOpen, .stoppedEarly:
                if let failure = entry.end.failure(of: entry.run) { throw failure }
            case .finished, .cancelled, .paused, .busy, .waiting, .credentialRefused: break
            }
        }
    }
}
