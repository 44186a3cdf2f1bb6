import Model
package import Campaigns

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
