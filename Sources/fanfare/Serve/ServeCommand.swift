import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Guide
import Logging
import Model
import Senders
import Sending
import ServiceLifecycle
import Store
import Systemd
import UnixSignals
import Web
import WebClient

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Start campaigns by their schedules and feeds until stopped.",
        discussion: """
            Changed files are reloaded automatically, or on SIGHUP. A file with errors keeps its last good version, \
            and `fanfare status` says so. `fanfare run` hands its run over to this process. SIGTERM waits for requests \
            in flight, records them and exits 0; the next start continues from there.
            """)

    @OptionGroup var settings: Settings
    @Flag(help: "Create the store if there is none (default: report a missing store).") var create = false
    @Flag(help: "Print a link that opens the pages once, even if there are access tokens or no terminal.")
    var link = false
    @OptionGroup var log: LogOptions

    func run() async throws {
        let configuration = try settings.configuration()
        let logger = log.logger(configuration, usual: .info)
        let manager = try ServiceManager.ofThisProcess()
        // The first start of a new version copies and migrates the store, which may take long.
        let session = try await manager.extendingStart {
            try await settings.session(configuration, create ? .making : .writing)
        }
        let store = session.store
        let registration = try session.daemonRegistration()
        let actor = ThisProcess.daemon(registration)
        try await session.recoverAbandoned()
        let reloading = Reloading(source: settings.source, configuration: configuration, logger: logger)
        let clock = session.clock
        let tokens = ProviderTokens(session, logger: logger)
        if let warning = configuration.http.proxy?.roleHeaderWarning { logger.warning("\(warning)") }
        let senders = try LocalSender.of(
            session, actor: actor, registration: registration, tokens: tokens, logger: logger
        ) {
            reloading.configuration
        }
        let supervisor = Supervisor(owner: actor.name, clock: clock, logger: logger)
        let daemon = Scheduler(
            store: store, senders: senders, actor: actor, clock: clock, web: .feeds(configuration),
            retention: { reloading.configuration.retention },
            approvals: { reloading.configuration.approvals }, brake: { reloading.configuration.volumeBrake },
            supervisor: supervisor, logger: logger)
        let webhooks = try await WebhookService(reloading: reloading, clock: clock) {
            try await .registered($0, store, by: actor, isDaemon: true, clock: clock, logger: logger)
        }
        let source = settings.source
        let credentials = CredentialWatch(logger: logger) { reloading.configuration }
        credentials.look()
        let environment = ProcessInfo.processInfo.environment
        let cases = UseCases(
            store: store, senders: session.senders, clock: clock, isSending: { daemon.isSending },
            diagnosis: {
                DiagnoseInstallation(
                    source: source, environment: environment, probes: .ofThisProcess, now: clock.now())
            },
            tools: SetupTools(source: source, environment: environment, probes: .ofThisProcess) {
                _ = try await reloading.readConfiguration()
                senders.reload()
                credentials.look(isAnew: true)
            }
        ) { reloading.configuration }
        cases.uploads.sweep()
        // The first page that shows the state of the installation then has it.
        _ = await cases.installation?.latest()
        let scrape = Operations.Scrape(
            tokens: tokens, senders: session.senders, credentials: credentials,
            configuration: { reloading.configuration }, status: { daemon.status })
        let operations = try await operations(
            configuration, cases, scrape, daemon,
            Supervisor(owner: actor.name, clock: clock.endingAtShutdown, logger: logger), logger)
        let service = DaemonService(
            daemon: daemon, senders: senders, credentials: credentials, reloading: reloading, manager: manager,
            webhooks: webhooks, operations: operations, supervisor: supervisor)
        logger.info(
            "daemon starts",
            metadata: .facts([
                .version: "\(Fanfare.configuration.version)", .store: "\(StoreAddress(configuration.store))",
            ]))
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(
                        service: ServeServices(daemon: service, operations: operations),
                        successTerminationBehavior: .gracefullyShutdownGroup)
                ],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        SecondSignal.workBegins()
        let deadline = StopDeadline(logger: logger)
        defer { withExtendedLifetime(deadline) {} }
        try await group.run()
    }

    private func operations(
        _ configuration: Configuration, _ cases: UseCases, _ scrape: Operations.Scrape, _ daemon: Scheduler,
        _ supervisor: Supervisor, _ logger: Logger
    ) async throws -> OperationsService? {
        try await Operations.requireTokens(configuration, cases)
        // A person at the terminal may sign in once without a token.
        let hasTokens = try await cases.access.hasTokens()
        let code = link || (Console.isInteractive && !hasTokens) ? cases.access.makeLinkCode() : nil
        do {
            let server = try Operations.server(
                configuration,
                webConsole: WebConsole(
                    cases: cases, link: OneTimeLink(code) { cases.uptime }, version: Fanfare.configuration.version,
                    guide: { .complete }),
                observer: cases.observing, now: { cases.now },
                scrape: scrape, logger: logger, isCoordinator: { daemon.isCoordinator },
                stops: { daemon.stopsInForce }, outages: { daemon.outages },
                health: { daemon.isAlive ? nil : "the daemon's event loop is blocked" },
                readiness: { daemon.unready })
            return OperationsService(server: server, supervisor: supervisor, logger: logger) { address in
                guard let code else { return }
                Console.note(
                    "open the pages with this link, once and within 15 minutes: http://\(address)/sign-in?link=\(code)")
            }
        } catch {
            logger.error("no pages, API, metrics or health checks", metadata: .facts([.error: "\(error)"]))
            return nil
        }
    }
}

/// The daemon and its HTTP side as one service, so that both receive a stop at the same moment and neither waits for
/// the other. When the daemon ends, both end.
private struct ServeServices: Service, CustomStringConvertible {
    let daemon: DaemonService
    let operations: OperationsService?

    /// The name in the group's log, which would otherwise print all properties.
    var description: String { "daemon" }

    func run() async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            if let operations {
                group.addTask {
                    try await operations.run()
                    return false
                }
            }
            group.addTask {
                try await daemon.run()
                return true
            }
            defer { group.cancelAll() }
            while let isDaemon = try await group.next() {
                // After a stop the HTTP side may still answer requests, within its own limit.
                if isDaemon, !Task.isShuttingDownGracefully { break }
            }
        }
    }
}

/// The daemon as a service of a group. It reads the files, reports to the service manager, and stops gracefully.
struct DaemonService: Service {
    /// The wait after a change of files. An editor or a deployment makes several changes in this time.
    private static let settleTime: Duration = .milliseconds(200)

    let daemon: Scheduler
    let senders: LocalSender
    let credentials: CredentialWatch
    let reloading: Reloading
    let manager: ServiceManager
    let webhooks: WebhookService
    let operations: OperationsService?
    let supervisor: Supervisor

    func run() async throws {
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        // Wait for the port, because a client may query the health of a ready daemon.
        if let operations { for await _ in operations.isSettled {} }
        // Report the daemon as ready before the files are read, because it already continues abandoned runs. If the
        // report fails, it is repeated later.
        let isToldReady = (try? manager.send(.ready)) != nil
        try await withGracefulShutdownHandler {
            try await work(hangUps, snapshots, snapshot, isToldReady: isToldReady)
        } onGracefulShutdown: {
            // An unreachable manager must not block the stop.
            try? manager.send(.stopping)
        }
    }

    private func work(
        _ hangUps: UnixSignalsSequence, _ snapshots: AsyncStream<Scheduler.CampaignSnapshot>,
        _ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation, isToldReady: Bool
    ) async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await supervisor.keep(.reload) { snapshot.yield(try await reloading.snapshot()) }
                    for await _ in hangUps { try await supervisor.keep(.reload) { try await reloadAsAsked(snapshot) } }
                }
                group.addTask { try await supervisor.keep(.watch) { try await watch(snapshot) } }
                group.addTask {
                    try await supervisor.keep(.watchdog) {
                        try await manager.notifyWatchdog(while: { daemon.isAlive }, sleep: WallClock.system.sleep)
                    }
                }
                group.addTask {
                    try await supervisor.keep(.status) {
                        if !isToldReady { try manager.send(.ready) }
                        try await tellManager()
                    }
                }
                group.addTask { try await webhooks.run(supervisor) }
                // The other tasks run as long as the daemon does.
                defer { group.cancelAll() }
                try await daemon.run(snapshots)
            }
        }
    }

    private func reloadAsAsked(_ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation) async throws {
        // Read the files even if the manager cannot be notified.
        let told = Result { try manager.sendReloading() }
        try await reload(snapshot, isAsked: true)
        try told.get()
        try manager.send(.ready)
    }

    /// - Parameter isAsked: whether a person requested the reload. A key file may then have changed although the
    ///   configuration has not.
    private func reload(
        _ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation, isAsked: Bool = false
    ) async throws {
        if try await reloading.readConfiguration() || isAsked {
            senders.reload()
            credentials.look(isAnew: true)
        }
        snapshot.yield(try await reloading.snapshot(isAsked: isAsked))
    }

    private func watch(_ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation) async throws {
        let watch = FolderWatch()
        watch.follow(reloading.folders)
        for await _ in watch.changes {
            try await Task.sleep(for: Self.settleTime)
            if try await reloading.hasChanged() { try await reload(snapshot) }
            watch.follow(reloading.folders)
        }
    }

    /// Sends a line for `systemctl status` whenever it changes.
    private func tellManager() async throws {
        guard manager.isListening else { return }
        var last = ""
        while !Task.isCancelled {
            let line = daemon.status.line
            if line != last { try manager.send(.status(line)) }
            last = line
            await WallClock.system.sleep(.seconds(5))
        }
    }
}

extension WallClock {
    /// Returns a clock whose sleeps end at a graceful stop, for a service that is not cancelled then.
    fileprivate var endingAtShutdown: WallClock {
        let sleep = sleep
        return WallClock(boot: boot, now: now, uptime: uptime) { duration in
            await cancelWhenGracefulShutdown { await sleep(duration) }
        }
    }
}

extension WebhookDispatcher {
    /// The maximum time that a finished command waits for webhooks. The next process delivers the rest.
    static let lastWait: Duration = .seconds(10)

    /// Registers the configured webhooks, so that events of runs are kept for them from now on. If a daemon runs, its
    /// list stays: this command may have another configuration. Call this before any run changes. Throws ``Failure``
    /// for a secret that cannot be read, unless a daemon runs.
    static func registered(_ session: Session, logger: Logger) async throws -> WebhookDispatcher {
        guard try await session.runs.daemon() != nil else {
            return try await registered(
                session.configuration.webhooks, session.store, by: session.actor, isDaemon: false,
                clock: session.clock, logger: logger)
        }
        // The daemon can read the secrets, and delivers what this command cannot sign.
        return WebhookDispatcher(
            store: session.store, actor: session.actor,
            signatures: (try? signatures(of: session.configuration.webhooks)) ?? [:], web: .webhooks,
            clock: session.clock, jitter: { Double.random(in: 0...1) }, logger: logger)
    }

    static func registered(
        _ webhooks: [Configuration.Webhook], _ store: any AllRoles, by actor: Actor, isDaemon: Bool, clock: WallClock,
        logger: Logger
    ) async throws -> WebhookDispatcher {
        try await WebhookDispatcher.registered(
            webhooks, store: store, actor: actor, isDaemon: isDaemon, web: .webhooks, clock: clock,
            jitter: { Double.random(in: 0...1) }, logger: logger)
    }
}

extension HTTPClient {
    /// Returns the client for feeds. Authors write their addresses, so the configuration restricts them.
    static func feeds(_ configuration: Configuration) -> HTTPClient {
        HTTPClient(addresses: .feeds(configuration.feeds), agent: agent)
    }

    /// The client for webhooks. A receiver that takes longer than 10 s gets its message again.
    static let webhooks: HTTPClient = {
        var limits = WebLimits()
        limits.totalTime = .seconds(10)
        limits.connectTime = .seconds(5)
        limits.bodyBytesMax = 1 << 20
        return HTTPClient(addresses: .any, limits: limits, agent: agent)
    }()

    private static var agent: String { "fanfare/\(Fanfare.configuration.version)" }
}

extension Session {
    /// Registers this process as the daemon. Throws ``SenderError/otherDaemon(_:)`` while another one runs, unless
    /// several machines share the store.
    fileprivate func daemonRegistration() throws -> SenderRegistration {
        let registration = try registration()
        guard try registration.becomeDaemon() || store.isShared else {
            throw SenderError.otherDaemon(senders.daemon()?.summary ?? "just starting or stopping")
        }
        return registration
    }
}

extension ServiceManager {
    /// Returns the manager that started this process. It does not listen if a shell started the process.
    static func ofThisProcess() throws -> ServiceManager {
        try ServiceManager(environment: ProcessInfo.processInfo.environment, processID: getpid())
    }
}
