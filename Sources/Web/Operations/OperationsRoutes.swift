import HTTPTypes
import Hummingbird
import Logging

/// Where the answers of the operations routes come from.
package struct OperationsSources: Sendable {
    private let registry: PrometheusRegistry
    private let gauges: @Sendable () async -> [GaugeFamily]
    private let health: @Sendable () async -> String?
    private let readiness: @Sendable () async -> String?

    /// - Parameters:
    ///   - registry: what is counted as it happens.
    ///   - gauges: what is read when somebody asks for metrics.
    ///   - health: why the process does not do its work; nil when it does. Must not wait for a store.
    ///   - readiness: why nothing could be sent now; nil when it could.
    package init(
        registry: PrometheusRegistry, gauges: @escaping @Sendable () async -> [GaugeFamily] = { [] },
        health: @escaping @Sendable () async -> String? = { nil },
        readiness: @escaping @Sendable () async -> String? = { nil }
    ) {
        self.registry = registry
        self.gauges = gauges
        self.health = health
        self.readiness = readiness
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
            guard let reason = await readiness() else { return Response.text("ready\n") }
            let words = await isTrusted(request, context) ? reason : "the log and `fanfare doctor` say why"
            return .text("not ready: \(words)\n", .serviceUnavailable)
        }
        router.get("metrics") { request, context in
            let hidden = await seesAll(request, context) ? [] : MetricLabel.confidential
            return Response.text(registry.text(with: await gauges(), without: hidden), type: PrometheusText.contentType)
        }
    }
}
