import HTTPTypes
import Hummingbird
import Logging
import ServiceLifecycle

/// The sources of the responses on the operations routes.
package struct OperationsSources: Sendable {
    private let registry: PrometheusRegistry
    private let gauges: @Sendable () async -> [GaugeFamily]
    private let health: @Sendable () async -> String?
    private let readiness: @Sendable () async -> String?
    private let outages: @Sendable () -> [String]

    /// - Parameters:
    ///   - registry: the metrics that are counted when events occur.
    ///   - gauges: reads the gauges during each scrape.
    ///   - health: returns why the process does not do its work, or `nil` if it does. It must not wait for a store.
    ///   - readiness: returns why requests cannot be served now, or `nil` if they can.
    ///   - outages: returns the reasons why pushes are not sent, while requests are still served.
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
                let summary = await isTrusted(request, context) ? reason : "the log and `fanfare doctor` say why"
                return Response.text("not ready: \(summary)\n", .serviceUnavailable)
            }
            let found = outages()
            guard !found.isEmpty else { return Response.text("ready\n") }
            // A load balancer must keep this server while APNs is unreachable. People who stop a campaign need the
            // pages most then.
            let summary =
                await isTrusted(request, context) ? found.joined(separator: "\n") : "sending is waiting; see the log"
            return Response.text("ready: \(summary)\n")
        }
        router.get("metrics") { request, context in
            let hidden = await seesAll(request, context) ? [] : MetricLabel.confidential
            return Response.text(registry.text(with: await gauges(), without: hidden), type: PrometheusText.contentType)
        }
    }
}
