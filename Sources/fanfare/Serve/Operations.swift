import APNs
import Campaigns
import Daemon
import Foundation
import Logging
import Metrics
import Model
import Senders
import Sending
import ServiceLifecycle
import Store
import Web

/// The HTTP side of a daemon: its metrics, its pages and its API.
enum Operations {
    /// Creates the server and installs the metrics backend, once per process. ``HTTPServer/run(onListening:)`` binds
    /// `http.listen`.
    ///
    /// - Parameters:
    ///   - isCoordinator: whether this process starts due occurrences for all senders.
    ///   - stops: the stops in force.
    ///   - outages: the endpoints that give this process no responses.
    ///   - health: the reason why the daemon does no work, or `nil` if it works.
    ///   - readiness: the reason why the daemon is not ready, or `nil` if it is. The server also reports a store that
    ///     does not respond.
    static func server(
        _ configuration: Configuration, webConsole: WebConsole, observer: ObserveStore,
        now: @escaping @Sendable () -> Timestamp, scrape: Scrape, logger: Logger,
        isCoordinator: @escaping @Sendable () -> Bool, stops: @escaping @Sendable () -> StopOrders,
        outages: @escaping @Sendable () -> [EndpointOutage],
        health: @escaping @Sendable () async -> String?, readiness: @escaping @Sendable () -> String?
    ) throws -> HTTPServer {
        let registry = PrometheusRegistry(helps: ServiceMetrics.helps)
        MetricsSystem.bootstrap(registry)
        ServiceMetrics.start(
            parts: DaemonPart.allCases.map(\.rawValue),
            targets: configuration.apps.flatMap { app in
                PushEnvironment.allCases.filter(app.credential.environments.contains).map { (app.topic, $0) }
            })
        let (host, port) = try address(configuration.http.listen)
        let sources = OperationsSources(
            registry: registry,
            gauges: {
                await gauges(observer, scrape, now()) + [
                    coordinator(isCoordinator()), stopped(stops()), reachable(outages()),
                ]
            },
            health: health,
            readiness: {
                do {
                    _ = try await observer.observe(now: now())
                    return readiness() ?? ObserveStore.fullDisk(of: configuration.store)
                } catch {
                    return "\(error)"
                }
            },
            outages: { outages().map(\.description) })
        return HTTPServer(host: host, port: port, sources: sources, webConsole: webConsole, logger: logger)
    }

    /// The sources of a scrape's gauges, besides the store.
    struct Scrape: Sendable {
        let tokens: ProviderTokens
        let senders: SenderFolder
        let credentials: CredentialWatch
        let configuration: @Sendable () -> Configuration
        let status: @Sendable () -> DaemonStatus

        fileprivate var gauges: [GaugeFamily] {
            let status = status()
            return GaugeFamily.files(
                loaded: status.campaigns, scheduled: status.scheduled, problems: status.problems.count,
                nextStart: status.nextStart)
                + ServiceGauges.all(senders) + ServiceGauges.credentials(credentials.look()) + [tokenAges]
        }

        /// The ages of the tokens of the configured keys. A key that was removed from the configuration signs no more
        /// tokens.
        private var tokenAges: GaugeFamily {
            let names = Set(
                configuration().apps.flatMap { app in PushEnvironment.allCases.map { app.credential.name(in: $0) } })
            return Operations.tokenAges(
                tokens.ages().filter { names.contains("key \($0.key.keyID) of team \($0.key.teamID)") })
        }
    }

    private static func tokenAges(_ ages: [(key: ProviderKey, age: Duration)]) -> GaugeFamily {
        GaugeFamily(
            "fanfare_provider_token_age_seconds", "The age of the provider token in use, by key.",
            ages.map { key, age in
                let labels = [
                    MetricLabel("team_id", key.teamID), MetricLabel("key_id", key.keyID),
                    MetricLabel("fingerprint", String(key.fingerprint.prefix(8))),
                ]
                return MetricSample(labels, age.inSeconds)
            })
    }

    /// The help texts of all gauges, by name.
    static var helps: [(name: String, help: String)] {
        let store = ObservationResult(
            StoreObservation(runs: [:], queues: [], logBytes: 0), now: Timestamp(milliseconds: 0))
        let sharing = SharingResult(senders: [], server: ServerObservation())
        let families =
            GaugeFamily.of(store) + GaugeFamily.of(sharing)
            + GaugeFamily.files(loaded: 0, scheduled: 0, problems: 0, nextStart: nil)
            + ServiceGauges.all(verifiedAt: nil, folder: "/") + ServiceGauges.credentials([])
            + [tokenAges([]), coordinator(false), stopped(StopOrders()), reachable([]), up(1)]
        return families.map { ($0.name, $0.help) }
    }

    private static func gauges(
        _ observer: ObserveStore, _ scrape: Scrape, _ now: Timestamp
    ) async -> [GaugeFamily] {
        let own = scrape.gauges
        do {
            let observation = try await observer.observe(now: now)
            let sharing = try await observer.sharing().map(GaugeFamily.of)
            // Omit the last backup: the server's own tools back up a database.
            let store = GaugeFamily.of(observation).filter { sharing == nil || $0.name != GaugeFamily.lastBackup }
            return store + (sharing ?? []) + [up(1)] + own
        } catch {
            // The scraper learns that the store does not respond, and still gets the other gauges.
            return [up(0)] + own
        }
    }

    private static func coordinator(_ isCoordinator: Bool) -> GaugeFamily {
        GaugeFamily(
            "fanfare_coordinator", "1 while this process starts what is due, polls feeds and does maintenance; else 0.",
            [MetricSample([], isCoordinator ? 1 : 0)])
    }

    private static func stopped(_ stops: StopOrders) -> GaugeFamily {
        GaugeFamily(
            "fanfare_stop_in_force", "The number of stops in force: of everything, a campaign or a run.",
            [MetricSample([], Double(stops.orders.count))])
    }

    private static func reachable(_ outages: [EndpointOutage]) -> GaugeFamily {
        GaugeFamily(
            "fanfare_endpoint_up", "0 while APNs gives this process no responses in an environment; else 1.",
            PushEnvironment.allCases.map { environment in
                let isUp = !outages.contains { $0.environment == environment }
                return MetricSample([MetricLabel("environment", "\(environment)")], isUp ? 1 : 0)
            })
    }

    private static func up(_ value: Double) -> GaugeFamily {
        GaugeFamily("fanfare_store_up", "1 while the store responds; else 0.", [MetricSample([], value)])
    }

    /// Throws if others can reach the address but no access token exists to identify them.
    static func requireTokens(_ configuration: Configuration, _ cases: UseCases) async throws {
        let (host, _) = try address(configuration.http.listen)
        guard host != "::1", !host.hasPrefix("127."), try await !cases.access.hasTokens() else { return }
        throw Failure(
            .configuration,
            "http.listen \(configuration.http.listen): pages and API are open only to this machine until there is an "
                + "access token; create one with `fanfare tokens create NAME --role admin`, or listen on 127.0.0.1")
    }

    /// Parses `127.0.0.1:8787` or `[::1]:8787`.
    static func address(_ text: String) throws -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65535).contains(port)
        else {
            throw Failure(
                .configuration, "http.listen \"\(text)\" is not address:port; write for example 127.0.0.1:8787")
        }
        return (text[..<colon].trimmingCharacters(in: ["[", "]"]), port)
    }
}

/// Serves pages, API, metrics and health checks while the daemon runs.
///
/// If the port is taken or the server fails, the server is retried after a pause. No broadcast is affected.
struct OperationsService: Service {
    private static let pauseMax: Duration = .seconds(60)

    private let server: HTTPServer
    private let supervisor: Supervisor
    private let logger: Logger
    /// Receives the address once the server listens on it.
    private let announce: @Sendable (_ address: String) -> Void
    private let listening: AsyncStream<Never>.Continuation
    /// A stream that ends when the port is bound, or when the first attempt has failed.
    let isSettled: AsyncStream<Never>

    /// - Parameter supervisor: a supervisor whose pauses end at a graceful stop of the process.
    init(
        server: HTTPServer, supervisor: Supervisor, logger: Logger,
        announce: @escaping @Sendable (_ address: String) -> Void = { _ in }
    ) {
        self.server = server
        self.supervisor = supervisor
        self.announce = announce
        self.logger = logger
        (isSettled, listening) = AsyncStream.makeStream(of: Never.self)
    }

    func run() async throws {
        try await supervisor.keep(.http, pauseMax: Self.pauseMax, failed: { _ in listening.finish() }) {
            if Task.isShuttingDownGracefully { return }
            try await server.run { [server, logger, listening, announce] port in
                let address = server.address(port: port)
                logger.info("pages, API, metrics and health checks", metadata: .facts([.address: "\(address)"]))
                announce(address)
                listening.finish()
            }
        }
    }
}
