import Foundation
import Logging
import Model
import Store
import Sending
import Daemon

/// Brings a run to its end: by the daemon when there is one, which is told through the store, otherwise here.
struct RunHandling: Sendable {
    let store: any AllRoles
    let sender: Pipeline.Sender
    let logger: Logger
    /// True: another process that has the run is waited for. False: only handed over. Nil: only the daemon is waited for.
    var wait: Bool?

    /// Nil: it was handed over, and nobody was to wait.
    func execute(_ run: Run) async throws -> RunEnd? {
        guard !run.state.isFinal else { return .finished }
        while true {
            if let daemon = try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter) {
                let words = "run \(run.id) is in the hands of the daemon (\(ProcessName.shown(daemon.owner)))"
                if wait == false {
                    Console.note(words)
                    return nil
                }
                Console.note("\(words); it goes on there when this command is left")
                if let end = try await follow(run, whileDaemon: true) { return end }
                continue
            }
            let end = try await Broadcast(store: store, sender: sender, logger: logger).execute(run)
            guard case .busy(let owner, _) = end, wait == true else { return end }
            Console.note("waiting for \(ProcessName.shown(owner)), which has run \(run.id)")
            if let end = try await follow(run, whileDaemon: false) { return end }
        }
    }

    private func follow(_ run: Run, whileDaemon: Bool) async throws -> RunEnd? {
        try await RunFollower(store: store).follow(run.id) {
            guard whileDaemon else { return false }
            return try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter) != nil
        }
    }

    /// To be asked before a run is made that nobody would carry out.
    static func requireDaemon(in store: any AllRoles) async throws {
        guard try await store.daemon(now: Timestamp(Date()), staleAfter: OwnerLiveness.staleAfter) == nil else {
            return
        }
        throw Failure(
            .tryAgain, "no daemon is there to hand the run over to; start `fanfare serve`, or leave out --no-wait")
    }
}
