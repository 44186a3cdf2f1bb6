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

    func add(to router: Router<WebContext>) {
        router.get("healthz") { _, _ in
            guard let reason = await health() else { return Response.text("ok\n") }
            return .text("not alive: \(reason)\n", .serviceUnavailable)
        }
        router.get("readyz") { _, _ in
            guard let reason = await readiness() else { return Response.text("ready\n") }
            return .text("not ready: \(reason)\n", .serviceUnavailable)
        }
        router.get("metrics") { _, _ in
            Response.text(registry.text(with: await gauges()), type: PrometheusText.contentType)
        }
    }
}
