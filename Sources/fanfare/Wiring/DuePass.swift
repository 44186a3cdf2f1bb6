import Engine
import Foundation
import Logging
import Model
import Storage
import UnixSignals
import WebClient

/// `run --due`: what the daemon would do now, and then leave. With it the whole product works from a timer alone.
struct DuePass: Sendable {
    /// What is due later than this is left to the next time.
    private static let patience: Duration = .seconds(60)

    let configuration: Configuration
    let store: Store
    let logger: Logger

    struct Ended: Sendable {
        var run: Run
        var end: RunEnd
    }

    /// The runs that were carried out or gone on with. A signal stops them in good order.
    func carryOut() async throws -> [Ended] {
        var catalog = CampaignCatalog()
        catalog.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalog.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let supply = Daemon.Supply(campaigns: catalog.ready, names: catalog.names)
        let fleet = Fleet.of(store: store, logger: logger, pace: configuration.pace) { configuration }
        let daemon = Daemon(
            store: store, fleet: fleet, owner: ThisProcess.owner, clock: .system, web: .feeds,
            retention: { configuration.outcomesKept }, logger: logger)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: [Ended]?.self) { group in
            group.addTask {
                try await daemon.once(supply, patience: Self.patience).map { Ended(run: $0.run, end: $0.end) }
            }
            group.addTask {
                for await _ in signals {
                    Console.note("stopping: nothing more is sent, waiting for the answers on their way")
                    break
                }
                return nil
            }
            // Whichever comes first ends the other.
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            return try await group.next().flatMap(\.self) ?? []
        }
    }
}

extension Fleet {
    /// The lanes of a process that sends for all apps of a configuration, which is asked for when it is needed.
    static func of(
        store: Store, logger: Logger, pace: Campaign.Pace?, configuration: @escaping @Sendable () -> Configuration
    ) -> Fleet {
        Fleet(
            store: store, owner: ThisProcess.owner, pace: pace, clock: .system,
            chance: { Double.random(in: 0...1) }, logger: logger
        ) { topic in
            let app = try configuration().app(for: topic)
            return Fleet.Berth(sender: try Pipeline.Sender(app, logger: logger), pace: app.pace)
        }
    }
}
