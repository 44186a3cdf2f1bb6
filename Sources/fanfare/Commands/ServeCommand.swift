import ArgumentParser
import Engine
import Foundation
import Logging
import Model
import ServiceLifecycle
import Storage
import Systemd
import UnixSignals

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

    func run() async throws {
        let configuration = try settings.configuration()
        let logger = logLevel.logger
        let manager = try ServiceManager.ofThisProcess()
        let store = try settings.store(configuration)
        try await Abandoned.recover(in: store)
        let reloading = Reloading(settings: settings, configuration: configuration, logger: logger)
        let fleet = Fleet.of(store: store, logger: logger, pace: configuration.pace) { reloading.configuration }
        let daemon = Daemon(
            store: store, fleet: fleet, owner: ThisProcess.owner, clock: .system, logger: logger)
        let service = DaemonService(daemon: daemon, fleet: fleet, reloading: reloading, manager: manager)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }
}
