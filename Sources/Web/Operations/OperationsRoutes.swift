import HTTPTypes
import Hummingbird
import Logging
import ServiceLifecycle

/// Where the answers of the operations routes come from.
package struct OperationsSources: Sendable {
    private let registry: PrometheusRegistry
    private let gauges: @Sendable () async -> [GaugeFamily]
    private let health: @Sendable () async -> String?
    private let readiness: @Sendable () async -> String?
    private let outages: @Sendable () -> [String]

    /// - Parameters:
    ///   - registry: what is counted as it happens.
    ///   - gauges: what is read when somebody asks for metrics.
    ///   - health: why the process does not do its work; nil when it does. Must not wait for a store.
    ///   - readiness: why requests cannot be served now; nil when they can.
    ///   - outages: what keeps pushes from being sent, while requests are served all the same.
    package init(
        registry: PrometheusRegistry, gauges: @escaping @Sendable () async -> [GaugeFamily] = { [] },
        health: @escaping @Sendable () async -> String? = { nil },
        readiness: @escaping @Sendable () async -> String? = { nil },
        outages: @escaping @Sendable () -> [String] = { [] }
    ) {
        self.registry = registry
        self.gauges = gauges
        self.health = health
        self.readiness = readiness
        self.outages = outages
    }

    static let paths = ["/healthz", "/readyz", "/metrics"]

    /// - Parameters:
    ///   - isTrusted: whether a caller may read the store's own errors.
    ///   - seesAll: whether a caller may read the metrics that name an app's campaigns and keys.
    func add(
        to router: Router<WebContext>, isTrusted: @escaping @Sendable (Request, WebContext) async -> Bool,
        seesAll: @escaping @Sendable (Request, WebContext) async -> Bool
    ) {
        router.get("healthz") { _, _ in
            guard let reason = await health() else { return Response.text("ok\n") }
            return .text("not alive: \(reason)\n", .serviceUnavailable)
        }
        router.get("readyz") { request, context in
            if Task.isShuttingDownGracefully { return Response.text("not ready: stopping\n", .serviceUnavailable) }
            if let reason = await readiness() {
                let words = await isTrusted(request, context) ? reason : "the log and `fanfare doctor` say why"
                return Response.text("not ready: \(words)\n", .serviceUnavailable)
            }
            let found = outages()
            guard !found.isEmpty else { return Response.text("ready\n") }
            // People who stop a campaign need the pages most while APNs is away: a balancer must not take them away.
            let words =
                await isTrusted(request, context) ? found.joined(separator: "\n") : "sending waits; the log says why"
            return Response.text("ready: \(words)\n")
        }
        router.get("metrics") { request, context in
            let hidden = await seesAll(request, context) ? [] : MetricLabel.confidential
            return Response.text(registry.text(with: await gauges(), without: hidden), type: PrometheusText.contentType)
        }
    }
}
