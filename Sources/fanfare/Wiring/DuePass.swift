import Foundation
import Logging
import Model
import Store
import UnixSignals
import WebClient
import Sending
import Daemon
import Campaigns

/// `run --due`: what the daemon would do now, and then leave. With it the whole product works from a timer alone.
struct DuePass: Sendable {
    /// What is due later than this is left to the next time.
    private static let idleLimit: Duration = .seconds(60)

    private let session: Session
    private let logger: Logger

    init(_ session: Session, logger: Logger) {
        self.session = session
        self.logger = logger
    }

    /// The runs that were carried out or gone on with, as they are now. A signal stops them in good order.
    func execute() async throws -> [DueRun] {
        let configuration = session.configuration
        var catalogue = CampaignCatalogue()
        catalogue.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        for problem in catalogue.problems { problem.diagnostics.forEach { Console.note($0.description) } }
        let snapshot = Scheduler.CampaignSnapshot(campaigns: catalogue.ready, names: catalogue.names)
        let senders = SenderRegistry.of(store: session.store, logger: logger, pace: configuration.pace) {
            configuration
        }
        let daemon = Scheduler(
            store: session.store, senders: senders, actor: ThisProcess.sender, clock: .system, web: .feeds,
            retention: { configuration.outcomesKept }, logger: logger)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: [DueRun]?.self) { group in
            group.addTask {
                try await daemon.runOnce(snapshot, idleLimit: Self.idleLimit)
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
