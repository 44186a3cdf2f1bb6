package import Campaigns
import Model

/// Writes the text format that Prometheus reads, version 0.0.4.
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
        heading(family.name, type: "gauge", help: family.help)
        for sample in family.samples { self.sample(family.name, sample.labels, sample.value) }
    }

    /// Whole numbers without a fraction; the infinities as Prometheus spells them.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    /// Anything as a name: letters, digits and `_`, none of the digits first.
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
    /// Names whose values tell of an app, its campaigns or its keys.
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

extension GaugeFamily {
    /// What the store knows at this moment: states of runs, what waits, and how long it should have left already.
    package static func of(_ observation: ObservationResult) -> [GaugeFamily] {
        let states = RunState.allCases.map { state in
            MetricSample([MetricLabel("state", state.rawValue)], Double(observation.runs[state] ?? 0))
        }
        func queues(_ value: (ObservationResult.Queue) -> Double) -> [MetricSample] {
            observation.queues.map { queue in
                MetricSample(
                    [MetricLabel("campaign", queue.campaign), MetricLabel("run", "\(queue.run)")], value(queue))
            }
        }
        return [
            GaugeFamily("fanfare_runs", "Runs by state.", states),
            GaugeFamily(
                "fanfare_queue_pending", "Deliveries of open runs that wait to be sent.", queues { Double($0.pending) }),
            GaugeFamily(
                "fanfare_queue_leased", "Deliveries of open runs that are taken for sending.",
                queues { Double($0.leased) }),
            GaugeFamily(
                "fanfare_queue_overdue_seconds", "How long ago the first of those that wait for a time was due.",
                queues { $0.overdueSeconds }),
            GaugeFamily(
                "fanfare_store_log_bytes", "Size of the store's write-ahead log.",
                [MetricSample([], Double(observation.logBytes))]),
        ]
    }
}

extension GaugeFamily {
    /// Who sends from a store that machines share, and how its server is.
    package static func of(_ sharing: SharingResult) -> [GaugeFamily] {
        let states = sharing.senders.sorted { $0.key < $1.key }.map { state, count in
            MetricSample([MetricLabel("state", state)], Double(count))
        }
        return [GaugeFamily("fanfare_senders", "Processes that send, and those that did of late, by state.", states)]
            + (sharing.server.map(of) ?? [])
    }

    private static func of(_ server: SharingResult.Server) -> [GaugeFamily] {
        func one(_ name: String, _ help: String, _ value: Double) -> GaugeFamily {
            GaugeFamily("fanfare_database_\(name)", help, [MetricSample([], value)])
        }
        func tables(_ name: String, _ help: String, _ value: (SharingResult.Table) -> Double?) -> GaugeFamily {
            let samples = server.tables.compactMap { table in
                value(table).map { MetricSample([MetricLabel("table", table.name)], $0) }
            }
            return GaugeFamily("fanfare_database_\(name)", help, samples)
        }
        return [
            one(
                "oldest_transaction_seconds",
                "Age of the oldest open transaction, which keeps the server from clearing dead rows away; 0: none.",
                server.oldestTransactionSeconds),
            one("connections", "Connections to the server, of all its databases.", Double(server.connections)),
            one(
                "connections_max", "Connections that the server takes (max_connections).", Double(server.connectionsMax)
            ),
            one("bytes", "Size of the store's database on disk.", Double(server.bytes)),
            tables("dead_rows", "Rows of a busy table that wait to be cleared away.") { Double($0.deadRows) },
            tables("live_rows", "Rows of a busy table.") { Double($0.liveRows) },
            tables("table_bytes", "Size of a busy table on disk, with its indexes.") { Double($0.bytes) },
            tables(
                "last_autovacuum_timestamp_seconds",
                "When the server last cleared a busy table by itself; absent: never yet."
            ) { $0.autovacuumedAt.map { Double($0.milliseconds) / 1000 } },
        ]
    }
}
