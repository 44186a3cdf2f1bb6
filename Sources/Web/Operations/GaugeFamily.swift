package import Campaigns
package import Model

/// Series whose values are read during a scrape, not recorded when an event occurs.
package struct GaugeFamily: Hashable, Sendable {
    package var name: String
    package var help: String
    package var samples: [MetricSample]
    /// Whether the values only increase while the process runs.
    package var isCounter = false

    package init(_ name: String, _ help: String, _ samples: [MetricSample], isCounter: Bool = false) {
        self.name = name
        self.help = help
        self.samples = samples
        self.isCounter = isCounter
    }

    /// Creates a family of one series without labels.
    package init(_ name: String, _ help: String, _ value: Double, isCounter: Bool = false) {
        self.init(name, help, [MetricSample([], value)], isCounter: isCounter)
    }
}

extension GaugeFamily {
    /// Returns the gauges of the store: the runs by state, the queue of each open run, and what waits for a person or
    /// for another server.
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
                "fanfare_queue_leased", "Deliveries of open runs that are leased for sending.",
                queues { Double($0.leased) }),
            GaugeFamily(
                "fanfare_queue_overdue_seconds", "How long the oldest waiting delivery is overdue.",
                queues { $0.overdueSeconds }),
            GaugeFamily(
                "fanfare_store_log_bytes", "Size of the store's write-ahead log.", Double(observation.logBytes)),
        ] + waits(observation)
    }

    package static let lastBackup = "fanfare_last_backup_timestamp_seconds"

    /// Returns the gauges of what waits for a person or for another server, and the times of the store's first entry
    /// and last backup.
    private static func waits(_ observation: ObservationResult) -> [GaugeFamily] {
        let halts = RunHalt.allCases.map { halt in
            MetricSample([MetricLabel("reason", halt.rawValue)], Double(observation.halts[halt] ?? 0))
        }
        let person = MetricSample([MetricLabel("reason", "person")], Double(observation.pausedByPeople))
        return [
            GaugeFamily(
                "fanfare_runs_paused", "Paused runs by reason: an automatic pause, or a person.", halts + [person]),
            GaugeFamily(
                "fanfare_runs_unreadable",
                "Runs that cannot be read, among the open ones and the latest hundred.",
                Double(observation.unreadableRuns)),
            GaugeFamily(
                "fanfare_approvals_open", "Plans that wait for signatures.", Double(observation.openApprovals)),
            GaugeFamily(
                "fanfare_webhook_messages", "Messages that webhook receivers have not accepted yet.",
                Double(observation.webhookMessages)),
            GaugeFamily(
                "fanfare_webhook_oldest_message_seconds",
                "Age of the oldest message that a webhook receiver has not accepted yet; 0 if there is none.",
                observation.oldestWebhookSeconds),
            GaugeFamily("fanfare_feeds_failing", "Feeds whose last poll failed.", Double(observation.failingFeeds)),
            GaugeFamily(
                lastBackup, "When `fanfare backup` last copied the store; 0 if never.",
                observation.backedUpAt.map { Double($0.milliseconds) / 1000 } ?? 0),
            GaugeFamily(
                "fanfare_store_began_timestamp_seconds",
                "When the first entry of the store's audit log was recorded; 0 if there is none.",
                observation.beganAt.map { Double($0.milliseconds) / 1000 } ?? 0),
        ]
    }
}

extension GaugeFamily {
    /// Returns the gauges of the campaign files that a daemon has read.
    ///
    /// - Parameters:
    ///   - scheduled: the number of loaded campaigns with a schedule.
    ///   - problems: the number of files with errors.
    package static func files(
        loaded: Int, scheduled: Int, problems: Int, nextStart: Timestamp?
    ) -> [GaugeFamily] {
        let campaigns = [("loaded", loaded), ("scheduled", scheduled)].map { kind, count in
            MetricSample([MetricLabel("kind", kind)], Double(count))
        }
        return [
            GaugeFamily(
                "fanfare_campaigns", "Loaded campaigns, and loaded campaigns with a schedule.", campaigns
            ),
            GaugeFamily(
                "fanfare_files_with_problems", "Campaign, template and configuration files with errors.",
                Double(problems)),
            GaugeFamily(
                "fanfare_next_start_timestamp_seconds", "When the next scheduled run starts; 0 if none is scheduled.",
                nextStart.map { Double($0.milliseconds) / 1000 } ?? 0),
        ]
    }
}

extension GaugeFamily {
    /// Returns the gauges of the senders that share a store, and of its database server.
    package static func of(_ sharing: SharingResult) -> [GaugeFamily] {
        let states = sharing.senders.sorted { $0.key < $1.key }.map { state, count in
            MetricSample([MetricLabel("state", state)], Double(count))
        }
        return [GaugeFamily("fanfare_senders", "Processes that send or recently sent, by state.", states)]
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
                "Age of the oldest open transaction, which keeps the server from vacuuming dead rows; 0 if none.",
                server.oldestTransactionSeconds),
            one("connections", "Connections to the server, of all its databases.", Double(server.connections)),
            one(
                "connections_max", "Connections that the server allows (max_connections).",
                Double(server.connectionsMax)
            ),
            one("bytes", "Size of the store's database on disk.", Double(server.bytes)),
            tables("dead_rows", "Dead rows of a busy table that wait for vacuum.") { Double($0.deadRows) },
            tables("live_rows", "Rows of a busy table.") { Double($0.liveRows) },
            tables("table_bytes", "Size of a busy table on disk, with its indexes.") { Double($0.bytes) },
            tables(
                "last_autovacuum_timestamp_seconds",
                "When the server last vacuumed a busy table automatically; absent if never."
            ) { $0.autovacuumedAt.map { Double($0.milliseconds) / 1000 } },
        ]
    }
}
