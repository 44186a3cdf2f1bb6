import Guide
import Sending
import Web

/// The reference page of all metrics, from the tables that the daemon's `/metrics` is built from.
enum MetricReference {
    static var page: GuidePage {
        let gauges = Operations.helps.map { (word: $0.name, explanation: $0.help) }
        let rows = (ServiceMetrics.helps.map { (word: $0, explanation: $1) } + gauges).sorted { $0.word < $1.word }
        let text = """
            # Metrics

            What `/metrics` of the daemon shows to Prometheus. `systemd/alerts.yml` has rules for them, and
            `systemd/grafana.json` a dashboard.

            \(ReferencePages.table("metric", rows))
            """
        return GuidePage(name: "ReferenceMetrics.md", text: text)
    }
}
