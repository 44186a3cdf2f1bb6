package import CoreMetrics
import Synchronization

/// Collects all metrics of this process: a backend for swift-metrics that Prometheus can read.
///
/// It is used instead of swift-prometheus, because a scrape also reads gauges from the store at that moment. A registry
/// that only receives values cannot do this.
///
/// A family has one type. A request for its name with another type returns a handler whose values are not exported.
/// Counters always end in `_total` and timers in `_seconds`. Characters that a name cannot contain become `_`. Any
/// thread may use the registry.
/// thread may use the registry.
package final class PrometheusRegistry: MetricsFactory, Sendable {
    private struct Family {
        var type: String
        var series: [[MetricLabel]: any MetricSeries] = [:]
    }

    private let helps: [String: String]
    private let families = Mutex<[String: Family]>([:])

    /// - Parameter helps: the help texts, by the name of the metric.
    package init(helps: [String: String] = [:]) {
        self.helps = helps
    }

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(Self.ending(label, "_total"), dimensions) { CounterSeries() }
    }

    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(Self.ending(label, "_total"), dimensions) { FloatingPointCounterSeries() }
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        aggregate
            ? series(label, dimensions) { HistogramSeries() } : series(label, dimensions) { GaugeSeries() }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(label, dimensions) { GaugeSeries() }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(Self.ending(label, "_seconds"), dimensions) { HistogramSeries() }
    }

    package func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    package func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    package func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    package func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    /// Returns all metrics with their current values, and the given gauges.
    ///
    /// - Parameter hidden: the names of confidential labels. A series with one of them is left out.
    package func text(with gauges: [GaugeFamily] = [], without hidden: Set<String> = []) -> String {
        var text = PrometheusText()
        let families = families.withLock { $0 }
        func isShown(_ labels: [MetricLabel]) -> Bool { !labels.contains { hidden.contains($0.name) } }
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            let shown = family.series.filter { isShown($0.key) }
            guard !shown.isEmpty else { continue }
            text.heading(name, type: family.type, help: helps[name] ?? "No description.")
            let series = shown.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            for (labels, one) in series { one.write(name, labels, to: &text) }
        }
        for var gauge in gauges where families[gauge.name] == nil {
            gauge.samples.removeAll { !isShown($0.labels) }
            text.gauges(gauge)
        }
        return text.text
    }

    private func series<Series: MetricSeries>(
        _ label: String, _ dimensions: [(String, String)], make: () -> Series
    ) -> Series {
        let name = PrometheusText.name(label)
        var labels: [MetricLabel] = []
        for (key, value) in dimensions {
            let key = PrometheusText.name(key)
            // A set of labels cannot contain a name twice, and the name `le` is reserved for histograms.
            if key != "le", !labels.contains(where: { $0.name == key }) { labels.append(MetricLabel(key, value)) }
        }
        labels.sort()
        return families.withLock { families in
            var family = families[name] ?? Family(type: Series.type)
            if let known = family.series[labels] { return known as? Series ?? make() }
            let series = make()
            guard family.type == Series.type else { return series }
            family.series[labels] = series
            families[name] = family
            return series
        }
    }

    private func remove(_ handler: any Sendable & AnyObject) {
        families.withLock { families in
            for (name, family) in families {
                guard let found = family.series.first(where: { $0.value === handler }) else { continue }
                families[name]?.series[found.key] = nil
            }
        }
    }

    private static func ending(_ label: String, _ end: String) -> String {
        label.hasSuffix(end) ? label : label + end
    }
}
