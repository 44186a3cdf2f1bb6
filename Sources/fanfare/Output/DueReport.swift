import Foundation
import Logging
import Model
import Store
import Daemon
import Sending

/// What `run --due` did, run by run.
enum DueReport {
    private struct JSON: Encodable {
        struct Entry: Encodable {
            var run: Int64
            var campaign: String
            var occurrence: String
            var state: String
            var stateReason: String?
            var counts: ReportJSON.Account
        }

        var runs: [Entry]
    }

    static func run(_ configuration: Configuration, _ store: any AllRoles, _ logger: Logger, json: Bool) async throws {
        try await Abandoned.recover(in: store)
        if let daemon = try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter) {
            Console.note("the daemon (\(ProcessName.shown(daemon.owner))) does this already")
            if json { Console.print(try JSONOutput.text(JSON(runs: []))) }
            return
        }
        let courier = try await WebhookDispatcher.registered(configuration, store, logger: logger)
        let ended = try await DuePass(configuration: configuration, store: store, logger: logger).execute()
        var entries: [JSON.Entry] = []
        for entry in ended {
            guard let run = try await store.run(entry.run.id) else { continue }
            entries.append(
                JSON.Entry(
                    run: run.id, campaign: run.campaign, occurrence: run.occurrence, state: run.state.rawValue,
                    stateReason: run.stateReason, counts: ReportJSON.Account(run.counts)))
        }
        Console.print(json ? try JSONOutput.text(JSON(runs: entries)) : text(entries, ended))
        try await courier.drain(within: WebhookDispatcher.lastWait)
        try leave(ended)
    }

    private static func text(_ entries: [JSON.Entry], _ ended: [DuePass.Ended]) -> String {
        guard !entries.isEmpty else { return "nothing is due" }
        return zip(entries, ended).map { entry, ended in
            var words = entry.state
            if case .waiting(let moment) = ended.end { words += ", the rest is due at \(moment.shown)" }
            return "run \(entry.run): \(entry.campaign), occurrence \(entry.occurrence): \(words); "
                + "\(entry.counts.accepted.grouped) of \(entry.counts.audience.grouped) accepted"
        }.joined(separator: "\n")
    }

    /// The most serious end decides; what is left for the next time is no failure.
    private static func leave(_ ended: [DuePass.Ended]) throws {
        for entry in ended {
            if case .credentialRefused = entry.end { try RunCommand.leave(entry.run, after: entry.end) }
        }
        for entry in ended {
            switch entry.end {
            case .unreachable, .breakerOpen, .stoppedEarly: try RunCommand.leave(entry.run, after: entry.end)
            case .finished, .cancelled, .paused, .busy, .waiting, .credentialRefused: break
            }
        }
    }
}
