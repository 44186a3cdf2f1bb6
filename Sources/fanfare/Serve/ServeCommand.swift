import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import ServiceLifecycle
import Store
import Systemd
import UnixSignals
import WebClient

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Obey the schedules of the campaign files until stopped.",
        discussion: """
            Changed files are read again by themselves, or on SIGHUP; a file that is wrong keeps what it said before, and \
            `fanfare status` says so. `fanfare run` hands its run over to this process. SIGTERM lets what is on its way \
            arrive, records it and exits 0; the next start goes on from there.
            """)

    @OptionGroup var settings: Settings
    @Option(help: "What to log on standard error: error, warning, info or debug.") var logLevel = LogLevel.info
    @Option(help: "How a line of the log is written: text, or json for machines.") var logFormat = LogFormat.text

    func run() async throws {
        let session = try settings.session()
        let (configuration, store) = (session.configuration, session.store)
        let logger = LogOptions.logger(logLevel, logFormat)
        let manager = try ServiceManager.ofThisProcess()
        try await session.recoverAbandoned()
        let reloading = Reloading(source: settings.source, configuration: configuration, logger: logger)
        let senders = SenderRegistry.of(store: store, logger: logger, pace: configuration.pace) {
            reloading.configuration
        }
        let daemon = Scheduler(
            store: store, senders: senders, actor: ThisProcess.daemon, clock: .system, web: .feeds,
            retention: { reloading.configuration.outcomesKept }, logger: logger)
        let webhooks = try await WebhookService(reloading: reloading, clock: .system, logger: logger) {
            try await .registered($0, store, by: ThisProcess.daemon, logger: logger)
        }
        let operations = operations(configuration, ObserveStore(store: store), daemon, logger)
        let service = DaemonService(
            daemon: daemon, senders: senders, reloading: reloading, manager: manager, webhooks: webhooks,
            operations: operations)
        var services: [ServiceGroupConfiguration.ServiceConfiguration] = [
            .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
        ]
        if let operations { services.append(.init(service: operations)) }
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services,
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }

    private func operations(
        _ configuration: Configuration, _ observer: ObserveStore, _ daemon: Scheduler, _ logger: Logger
    ) -> OperationsService? {
        do {
            let server = try Operations.server(configuration, observer: observer, logger: logger) {
                daemon.isAlive ? nil : "the daemon's loop has not turned for a while"
            }
            return OperationsService(server: server, logger: logger)
        } catch {
            logger.error("no metrics and no health checks", metadata: ["error": "\(error)"])
            return nil
        }
    }
}
