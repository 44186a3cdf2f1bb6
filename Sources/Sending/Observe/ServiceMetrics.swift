package import Logging
import Metrics
package import Model
package import Synchronization

/// What a daemon tells about itself, under the names that its dashboards know.
package enum ServiceMetrics {
    /// A sentence for each name, for whoever prints them.
    package static let helps = [
        "fanfare_pushes_total": "Answers of APNs, and requests without one, by what they said.",
        "fanfare_push_latency_seconds": "From the first byte of a request to its answer.",
        "fanfare_lane_in_flight": "Requests written and not yet answered.",
        "fanfare_lane_stream_limit": "Requests that may be on the wire at once.",
        "fanfare_lane_queued": "Pushes handed to the lane and not yet written.",
        "fanfare_suppressed_total": "Deliveries deliberately not sent when their turn came, by reason.",
        "fanfare_reloads_total": "Times the files were read again.",
        "fanfare_last_good_reload_timestamp_seconds": "When the files were last read without a fault.",
        "fanfare_store_waiting":
            "1 while the store does not take outcomes, locked or on a full disk, and nothing new is sent; else 0.",
        "fanfare_daemon_errors_total": "Errors after which a part of the daemon was tried again, by part.",
        "fanfare_unsuccessful_runs_total": "Runs that this process finished without success, by campaign.",
        "fanfare_schedule_lag_seconds": "How long after its time the latest scheduled run started.",
    ]

    /// Pushes of this process that have an outcome.
    package static let answered = Atomic(0)

    /// The configuration, campaigns and templates were read again; a bad file keeps the old ones.
    package static func reloaded(isGood: Bool, at moment: Timestamp) {
        Counter(label: "fanfare_reloads_total", dimensions: [("result", isGood ? "good" : "bad")]).increment()
        guard isGood else { return }
        Meter(label: "fanfare_last_good_reload_timestamp_seconds").set(Double(moment.milliseconds) / 1000)
    }

    /// The store does not take what is to be recorded, or does again.
    package static func waitsForStore(_ waits: Bool) { Meter(label: "fanfare_store_waiting").set(waits ? 1 : 0) }

    /// A part of the daemon met an error, and is tried again.
    package static func failed(part: String) {
        Counter(label: "fanfare_daemon_errors_total", dimensions: [("part", part)]).increment()
    }

    /// A run finished, and is no success.
    package static func unsuccessful(campaign: String) {
        Counter(label: "fanfare_unsuccessful_runs_total", dimensions: [("campaign", campaign)]).increment()
    }

    /// A scheduled run started this much after its time.
    package static func started(late: Duration) {
        Meter(label: "fanfare_schedule_lag_seconds").set(max(0, late.inSeconds))
    }

    /// Found not to be sent any more when their turn came.
    package static func suppressed(_ counts: [SuppressionReason: Int]) {
        for (reason, count) in counts {
            Counter(label: "fanfare_suppressed_total", dimensions: [("reason", reason.rawValue)]).increment(by: count)
        }
    }
}

// The facts of a log line by the keys of one enum, so that a key is spelt once.
extension Dictionary where Key == String, Value == Logger.MetadataValue {
    package static func facts(_ facts: [LogKey: Logger.MetadataValue]) -> Logger.Metadata {
        Dictionary(uniqueKeysWithValues: facts.map { ($0.key.rawValue, $0.value) })
    }

    package subscript(key: LogKey) -> Logger.MetadataValue? {
        get { self[key.rawValue] }
        set { self[key.rawValue] = newValue }
    }
}
