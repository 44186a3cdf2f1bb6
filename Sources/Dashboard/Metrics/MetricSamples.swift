/// One series at one moment: the labels that tell it from its sisters, and its value.
package struct MetricSample: Hashable, Sendable {
    package var labels: [MetricLabel]
    package var value: Double

    package init(_ labels: [MetricLabel] = [], _ value: Double) {
        self.labels = labels
        self.value = value
    }
}

package struct MetricLabel: Hashable, Sendable, Comparable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    package static func < (left: MetricLabel, right: MetricLabel) -> Bool {
        (left.name, left.value) < (right.name, right.value)
    }
}

/// Gauges that are read when somebody asks, not when something happens.
package struct GaugeFamily: Hashable, Sendable {
    package var name: String
    package var help: String
    package var samples: [MetricSample]

    package init(_ name: String, _ help: String, _ samples: [MetricSample]) {
        self.name = name
        self.help = help
        self.samples = samples
    }
}
