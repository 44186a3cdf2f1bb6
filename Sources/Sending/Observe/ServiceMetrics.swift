package import Logging
import Metrics
package import Model
package import Store
package import Synchronization

/// The metrics that a daemon reports about itself, under the names that its dashboards use.
package enum ServiceMetrics {
    /// One sentence of help text for each metric name.
    package static let helps = [
        "fanfare_pushes_total": "Responses from APNs, and requests without a response, by status and reason.",
        "fanfare_push_latency_seconds": "The time from the first byte of a request to its response.",
        "fanfare_lane_in_flight": "Requests written that have no response yet.",
        "fanfare_lane_stream_limit": "Requests that may be in flight concurrently.",
        "fanfare_lane_queued": "Pushes queued for a connection and not yet written.",
        "fanfare_suppressed_total":
            "Deliveries deliberately not sent, found when the audience was stored or at their turn, by reason.",
        "fanfare_outcomes_total": "Outcomes that this process recorded, by campaign: accepted, rejected or unknown.",
        "fanfare_http_requests_total": "Requests that the HTTP server handled, by kind and status.",
        "fanfare_events_total":
            "Reports of apps over HTTP by type (`unreadable` if unknown) and result: recorded, repeated or rejected. "
            + "While a run is sent, they count up to a minute later.",
        "fanfare_opens_total": "Opens of pushes that apps reported over HTTP, each counted once, when it is recorded.",
        "fanfare_reloads_total": "The number of reloads of the files.",
        "fanfare_last_good_reload_timestamp_seconds": "The time of the last reload without a fault.",
        "fanfare_campaign_folder_lost":
            "1 while the folder of the campaigns cannot be read or is empty, and earlier versions stay in use.",
        "fanfare_store_waiting":
            "1 while the store accepts no outcomes, because of a lock or a full disk, and nothing new is sent; else 0.",
        "fanfare_sender_too_slow":
            "1 while the database server responds to heartbeats too slowly for this machine to send; else 0.",
        "fanfare_daemon_errors_total": "Errors after which a part of the daemon was retried, by part.",
        "fanfare_unsuccessful_runs_total": "Runs that this process finished without success, by campaign.",
        "fanfare_schedule_lag_seconds": "The delay of the latest scheduled run after its time.",
    ]

    /// The number of this process's pushes that lanes have completed, with or without a response.
    package static let answered = Atomic(0)

    /// Records that the configuration, campaigns and templates were read again. A bad file keeps the old versions.
    package static func reloaded(isGood: Bool, at moment: Timestamp) {
        Counter(label: "fanfare_reloads_total", dimensions: [("result", isGood ? "good" : "bad")]).increment()
        guard isGood else { return }
        Meter(label: "fanfare_last_good_reload_timestamp_seconds").set(Double(moment.milliseconds) / 1000)
    }

    /// Records whether the campaign folder is lost (gone or empty).
    package static func campaignFolder(isLost: Bool) {
        Meter(label: "fanfare_campaign_folder_lost").set(isLost ? 1 : 0)
    }

    /// Records whether the process waits for a store that accepts no outcomes.
    package static func waitsForStore(_ waits: Bool) { Meter(label: "fanfare_store_waiting").set(waits ? 1 : 0) }

    /// Records whether the database server responds to heartbeats too slowly for this machine to send.
    package static func isTooSlow(_ isTooSlow: Bool) { Meter(label: "fanfare_sender_too_slow").set(isTooSlow ? 1 : 0) }

    /// Counts an error of a part of the daemon. The part is retried.
    package static func failed(part: String) {
        Counter(label: "fanfare_daemon_errors_total", dimensions: [("part", part)]).increment()
    }

    /// Counts a run that finished without success.
    package static func unsuccessful(campaign: String) {
        Counter(label: "fanfare_unsuccessful_runs_total", dimensions: [("campaign", campaign)]).increment()
    }

    /// Records how long after its time a scheduled run started.
    package static func started(late: Duration) {
        Meter(label: "fanfare_schedule_lag_seconds").set(max(0, late.inSeconds))
    }

    /// Creates every series whose labels are known, with the value 0. Otherwise the first event would create the
    /// series, and its increase would be lost.
    ///
    /// - Parameters:
    ///   - parts: the parts of the daemon.
    ///   - targets: the topics and environments of the configured apps.
    package static func start(parts: [String], targets: [(topic: String, environment: PushEnvironment)]) {
        for result in ["good", "bad"] {
            Counter(label: "fanfare_reloads_total", dimensions: [("result", result)]).start()
        }
        for part in parts { Counter(label: "fanfare_daemon_errors_total", dimensions: [("part", part)]).start() }
        for reason in SuppressionReason.allCases {
            Counter(label: "fanfare_suppressed_total", dimensions: [("reason", reason.rawValue)]).start()
        }
        for target in targets {
            let dimensions = [("topic", target.topic), ("environment", target.environment.rawValue)]
            for type in [PushType.alert, .background] {
                let more = [("push_type", type.rawValue), ("status", "200"), ("reason", "")]
                Counter(label: "fanfare_pushes_total", dimensions: dimensions + more).start()
            }
            _ = Timer(label: "fanfare_push_latency_seconds", dimensions: dimensions)
        }
        for kind in FeedbackKind.allCases.map(Optional.some) + [nil] {
            for result in FeedbackTally.Result.allCases where kind != nil || result == .rejected {
                counter(FeedbackTally(kind: kind, result: result)).start()
            }
        }
        opens.start()
        waitsForStore(false)
        isTooSlow(false)
        started(late: .zero)
    }

    /// Creates the series of these campaigns, when their files are read.
    package static func start(campaigns: some Sequence<String>) {
        for campaign in campaigns { for outcome in Outcome.allCases { counter(outcome, of: campaign).start() } }
    }

    private enum Outcome: String, CaseIterable {
        case accepted, rejected, unknown

        init?(_ verdict: Settlement.Verdict) {
            switch verdict {
            case .accepted: self = .accepted
            case .rejected: self = .rejected
            case .unknown: self = .unknown
            case .retry, .suppressed: return nil
            }
        }
    }

    private static func counter(_ outcome: Outcome, of campaign: String) -> Counter {
        Counter(label: "fanfare_outcomes_total", dimensions: [("campaign", campaign), ("outcome", outcome.rawValue)])
    }

    /// Counts the recorded outcomes of a campaign's runs.
    static func recorded(_ settlements: [Settlement], of campaign: String) {
        let counts = Dictionary(settlements.compactMap { Outcome($0.verdict) }.map { ($0, 1) }, uniquingKeysWith: +)
        for (outcome, count) in counts { counter(outcome, of: campaign).increment(by: count) }
    }

    /// Counts reports of apps when their results are known, so that a report that is sent several times is recorded
    /// once.
    package static func reported(_ tally: [FeedbackTally: Int]) {
        for (result, count) in tally {
            counter(result).increment(by: count)
            if result == FeedbackTally(kind: .opened, result: .recorded) { opens.increment(by: count) }
        }
    }

    private static var opens: Counter { Counter(label: "fanfare_opens_total") }

    private static func counter(_ tally: FeedbackTally) -> Counter {
        Counter(
            label: "fanfare_events_total",
            dimensions: [("type", tally.kind?.name ?? "unreadable"), ("result", tally.result.rawValue)])
    }

    /// Counts suppressed deliveries, found at the freeze or when they are due.
    package static func suppressed(_ counts: [SuppressionReason: Int]) {
        for (reason, count) in counts {
            Counter(label: "fanfare_suppressed_total", dimensions: [("reason", reason.rawValue)]).increment(by: count)
        }
    }
}

extension Counter {
    /// Creates the series, with the value 0.
    fileprivate func start() { increment(by: 0) }
}

extension RunControl {
    /// Counts the deliveries that the freeze has written in one batch.
    func grew(_ batch: FrozenBatch) {
        ServiceMetrics.suppressed(batch.suppressed)
        progress.grew(audience: batch.audience)
    }
}

// Keys the metadata of a log line by `LogKey`, so that each key is spelt in one place.
extension Dictionary where Key == String, Value == Logger.MetadataValue {
    package static func facts(_ facts: [LogKey: Logger.MetadataValue]) -> Logger.Metadata {
        Dictionary(uniqueKeysWithValues: facts.map { ($0.key.rawValue, $0.value) })
    }

    package subscript(key: LogKey) -> Logger.MetadataValue? {
        get { self[key.rawValue] }
        set { self[key.rawValue] = newValue }
    }
}
