import ArgumentParser
import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Sending
import ServiceLifecycle
import Store
import Systemd
import UnixSignals
import Web
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
    @Flag(help: "Make the store where there is none; otherwise a path that is wrong is said.") var create = false
    @Flag(help: "Print a link that opens the pages once, also where there are access tokens or no terminal.")
    var link = false
    @Option(help: "What to log on standard error: error, warning, info or debug.") var logLevel = LogLevel.info
    @Option(help: "How a line of the log is written: text, or json for machines.") var logFormat = LogFormat.text

    func run() async throws {
        let session = try await settings.session(create ? .making : .writing)
        let (configuration, store) = (session.configuration, session.store)
        let logger = LogOptions.logger(logLevel, logFormat)
        let post = try session.daemonPost()
        let actor = ThisProcess.daemon(post)
        let manager = try ServiceManager.ofThisProcess()
        try await session.recoverAbandoned()
        let reloading = Reloading(source: settings.source, configuration: configuration, logger: logger)
        let clock = session.clock
        let tokens = ProviderTokens(session, logger: logger)
        let senders = try SenderRegistry.of(session, actor: actor, post: post, tokens: tokens, logger: logger) {
            reloading.configuration
        }
        let daemon = Scheduler(
            store: store, senders: senders, actor: actor, clock: clock, web: .feeds,
            retention: { reloading.configuration.outcomesKept },
            approvals: { reloading.configuration.approvals }, brake: { reloading.configuration.volumeBrake },
            logger: logger)
        let webhooks = try await WebhookService(reloading: reloading, clock: clock, logger: logger) {
            try await .registered($0, store, by: actor, clock: clock, logger: logger)
        }
        let cases = UseCases(store: store, senders: session.senders, clock: clock) { reloading.configuration }
        let operations = try await operations(configuration, cases, tokens, daemon, logger)
        let service = DaemonService(
            daemon: daemon, senders: senders, reloading: reloading, manager: manager, webhooks: webhooks,
            operations: operations)
        // The last is stopped first: nobody who reads a page keeps the daemon from stopping.
        var services = operations.map { [ServiceGroupConfiguration.ServiceConfiguration(service: $0)] } ?? []
        services.append(.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup))
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services,
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }

    private func operations(
        _ configuration: Configuration, _ cases: UseCases, _ tokens: ProviderTokens, _ daemon: Scheduler,
        _ logger: Logger
    ) async throws -> OperationsService? {
        try await Operations.requireTokens(configuration, cases)
        // Whoever sits at the terminal is let in without one, once.
        let hasTokens = try await cases.access.hasTokens()
        let code = link || (Console.isInteractive && !hasTokens) ? cases.access.makeLinkCode() : nil
        do {
            let server = try Operations.server(
                configuration,
                studio: Studio(cases: cases, link: OneTimeLink(code), version: Fanfare.configuration.version),
                observer: cases.observing, now: { cases.now },
                tokens: tokens, logger: logger, isCoordinator: { daemon.isCoordinator },
                stops: { daemon.stopsInForce },
                health: { daemon.isAlive ? nil : "the daemon's loop has not turned for a while" },
                readiness: { daemon.unready })
            return OperationsService(server: server, logger: logger) { address in
                guard let code else { return }
                Console.note("open the pages, once by this link: http://\(address)/sign-in?link=\(code)")
            }
        } catch {
            logger.error("no pages, API, metrics and health checks", metadata: .facts([.error: "\(error)"]))
            return nil
        }
    }
}

/// The daemon as a service of a group: told the files, kept calm with the service manager, stopped in good order.
struct DaemonService: Service {
    /// So many changes in a row, as an editor or a deployment makes them, are one.
    private static let settleTime: Duration = .milliseconds(200)

    let daemon: Scheduler
    let senders: SenderRegistry
    let reloading: Reloading
    let manager: ServiceManager
    let webhooks: WebhookService
    let operations: OperationsService?

    func run() async throws {
        let (snapshots, snapshot) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        // Who hears that the daemon is ready may ask for its health.
        if let operations { for await _ in operations.isSettled {} }
        // It is at work from now on, whatever time the files take: runs that were left behind go on.
        try manager.send(.ready)
        try await withGracefulShutdownHandler {
            try await work(hangUps, snapshots, snapshot)
        } onGracefulShutdown: {
            // A manager that has gone away meanwhile keeps nobody from stopping.
            try? manager.send(.stopping)
        }
    }

    private func work(
        _ hangUps: UnixSignalsSequence, _ snapshots: AsyncStream<Scheduler.CampaignSnapshot>,
        _ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation
    ) async throws {
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    snapshot.yield(try await reloading.snapshot())
                    for await _ in hangUps {
                        try manager.sendReloading()
                        try await reload(snapshot, isAsked: true)
                        try manager.send(.ready)
                    }
                }
                group.addTask { try await watch(snapshot) }
                group.addTask {
                    try await manager.notifyWatchdog(while: { daemon.isAlive }, sleep: WallClock.system.sleep)
                }
                group.addTask { try await tellManager() }
                group.addTask { await webhooks.run() }
                // The others go on as long as it does.
                defer { group.cancelAll() }
                try await daemon.run(snapshots)
            }
        }
    }

    /// - Parameter isAsked: by a person, who may have replaced a key file without a word of the configuration changing.
    private func reload(
        _ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation, isAsked: Bool = false
    ) async throws {
        if try await reloading.readConfiguration() || isAsked { senders.reload() }
        snapshot.yield(try await reloading.snapshot())
    }

    private func watch(_ snapshot: AsyncStream<Scheduler.CampaignSnapshot>.Continuation) async throws {
        let watch = FolderWatch(folders: reloading.folders)
        for await _ in watch.changes {
            try await Task.sleep(for: Self.settleTime)
            if try await reloading.hasChanged() { try await reload(snapshot) }
        }
    }

    /// A line for `systemctl status`, when it has changed.
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

extension WebhookDispatcher {
    /// How long a command that is done waits for webhooks; the next process goes on with the rest.
    static let lastWait: Duration = .seconds(10)

    /// Registers the configured webhooks, so that what happens to runs from now on is kept for them. To be called before
    /// anything does; throws ``Failure`` for a secret that cannot be read.
    static func registered(_ session: Session, logger: Logger) async throws -> WebhookDispatcher {
        try await registered(
            session.configuration.webhooks, session.store, by: session.actor, clock: session.clock, logger: logger)
    }

    static func registered(
        _ webhooks: [Configuration.Webhook], _ store: any AllRoles, by actor: Actor, clock: WallClock,
        logger: Logger
    ) async throws -> WebhookDispatcher {
        try await WebhookDispatcher.registered(
            webhooks, store: store, actor: actor, web: .webhooks, clock: clock,
            jitter: { Double.random(in: 0...1) }, logger: logger)
    }
}

extension HTTPClient {
    static let feeds = HTTPClient(agent: agent)

    /// A receiver that takes longer than this has its message again.
    static let webhooks: HTTPClient = {
        var limits = WebLimits()
        limits.totalTime = .seconds(10)
        limits.connectTime = .seconds(5)
        limits.bodyBytesMax = 1 << 20
        return HTTPClient(limits: limits, agent: agent)
    }()

    private static var agent: String { "fanfare/\(Fanfare.configuration.version)" }
}

extension Session {
    /// This process as the daemon. Throws ``SendingError/otherDaemon(_:)`` while another one lives, but where machines share
    /// the store.
    fileprivate func daemonPost() throws -> SenderPost {
        let post = try post()
        guard try post.becomeDaemon() || store.isShared else {
            throw SendingError.otherDaemon(senders.daemon()?.words ?? "just starting or stopping")
        }
        return post
    }
}

extension ServiceManager {
    /// The manager that started this process; one that does not listen when it was started from a shell.
    static func ofThisProcess() throws -> ServiceManager {
        try ServiceManager(environment: ProcessInfo.processInfo.environment, processID: getpid())
    }
}
