/// Writes the text format of Prometheus, version 0.0.4.
struct PrometheusText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""

    mutating func heading(_ name: String, type: String, help: String) {
        text += "# HELP \(name) \(Self.escaped(help, quotes: false))\n# TYPE \(name) \(type)\n"
    }

    mutating func sample(_ name: String, _ labels: [MetricLabel], _ value: Double) {
        text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(Self.number(value))\n"
    }

    mutating func gauges(_ family: GaugeFamily) {
        guard !family.samples.isEmpty else { return }
        heading(family.name, type: family.isCounter ? "counter" : "gauge", help: family.help)
        for sample in family.samples { self.sample(family.name, sample.labels, sample.value) }
    }

    /// Returns the text of a number. Whole numbers below 1e15 have no fraction, and infinities have Prometheus's
    /// spelling.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    /// Returns the text as a valid name of ASCII letters, digits and `_`, which does not begin with a digit.
    static func name(_ text: String) -> String {
        let name = String(
            text.unicodeScalars.map { scalar in
                scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
                    ? Character(scalar) : "_"
            })
        return name.first.map { $0.isNumber } ?? true ? "_" + name : name
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}

/// The labels and the value of a series at one moment.
package struct MetricSample: Hashable, Sendable {
    package var labels: [MetricLabel]
    package var value: Double

    package init(_ labels: [MetricLabel] = [], _ value: Double) {
        self.labels = labels
        self.value = value
    }
}

package struct MetricLabel: Hashable, Sendable, Comparable {
    /// The names of labels whose values reveal an app, its campaigns or its keys.
    static let confidential: Set<String> = ["campaign", "run", "topic", "team_id", "key_id", "fingerprint"]

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
