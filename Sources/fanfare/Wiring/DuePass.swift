import Foundation
import Logging
import Model
import Store
import UnixSignals
import WebClient
import Sending
import Daemon

/// `run --due`: what the daemon would do now, and then leave. With it the whole product works from a timer alone.
struct DuePass: Sendable {
    /// What is due later than this is left to the next time.
    private static let idleLimit: Duration = .seconds(60)

    let configuration: Configuration
    let store: any AllRoles
    let logger: Logger

    struct Ended: Sendable {
        var run: Run
        var end: RunEnd
    }

    /// The runs that were carried out or gone on with. A signal stops them in good order.
    func execute() async throws -> [Ended] {
        var catalog = CampaignCatalog()
        catalog.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalog.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let snapshot = Scheduler.CampaignSnapshot(campaigns: catalog.ready, names: catalog.names)
        let senders = SenderRegistry.of(store: store, logger: logger, pace: configuration.pace) { configuration }
        let daemon = Scheduler(
            store: store, senders: senders, actor: ThisProcess.sender, clock: .system, web: .feeds,
            retention: { configuration.outcomesKept }, logger: logger)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: [Ended]?.self) { group in
            group.addTask {
                try await daemon.once(snapshot, idleLimit: Self.idleLimit).map { Ended(run: $0.run, end: $0.end) }
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

extension SenderRegistry {
    /// The lanes of a process that sends for all apps of a configuration, which is asked for when it is needed.
    static func of(
        store: any AllRoles, logger: Logger, pace: Campaign.Pace?,
        configuration: @escaping @Sendable () -> Configuration
    ) -> SenderRegistry {
        SenderRegistry(
            store: store, actor: ThisProcess.sender, pace: pace, clock: .system,
            jitter: { Double.random(in: 0...1) }, logger: logger
        ) { topic in
            let app = try configuration().app(for: topic)
            return SenderRegistry.Entry(sender: try Pipeline.Sender(app, logger: logger), pace: app.pace)
        }
    }
}
