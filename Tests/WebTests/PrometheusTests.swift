import APNs
import CoreMetrics
import Campaigns
import Foundation
import Sending
import Metrics
import Model
import SQLiteStore
import Store
import Testing
import Web

struct PrometheusTests {
    static let broken = [
        "a 1", "a_total 1\n", "# HELP a x\n# TYPE a counter\na 1\n", "# HELP a x\n# TYPE a gauge\na{b=c} 1\n",
        "# HELP a x\n# TYPE a gauge\na{b=\"c\"} 1\na{b=\"c\"} 2\n", "# HELP a x\n# TYPE a gauge\na{b=\"c} 1\n",
        "# HELP a x\n# TYPE a gauge\n# TYPE a gauge\na 1\n", "# HELP a x\n# TYPE a gauge\na one\n", "1a 1\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_sum 1\na_count 2\n",
        "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total -1\n",
    ]

    @Test(arguments: broken) func `the grammar of this test refuses what is not the format`(text: String) {
        #expect(!ExpositionGrammar(text).faults.isEmpty)
    }

    @Test func `everything that can be counted is written in the format, whatever its names and labels are`() {
        let registry = PrometheusRegistry(helps: ["odd_total": "A help\nwith \\ in it."])
        Counter(
            label: "odd", dimensions: [("b", "x\"y\\z\nü"), ("a", ""), ("b", "twice"), ("9 no", "y")], factory: registry
        )
        .increment(by: 3)
        Counter(label: "odd", dimensions: [], factory: registry).increment()
        FloatingPointCounter(label: "float", dimensions: [], factory: registry).increment(by: 1.5)
        Meter(label: "meter.with-dots", dimensions: [], factory: registry).set(-2.25)
        Gauge(label: "gauge", dimensions: [("le", "dropped")], factory: registry).record(Double.infinity)
        Recorder(label: "sizes", dimensions: [], aggregate: true, factory: registry).record(7)
        let timer = Metrics.Timer(label: "wait", dimensions: [("lane", "p-1")], factory: registry)
        for milliseconds in [1, 3, 40, 30_000] as [Int64] { timer.recordNanoseconds(milliseconds * 1_000_000) }
        let read = ExpositionGrammar(registry.text())
        #expect(read.faults == [])
        #expect(read.value("odd_total", ["a": "", "b": "x\"y\\z\nü", "_9_no": "y"]) == 3)
        #expect(read.value("odd_total") == 1)
        #expect(read.value("float_total") == 1.5)
        #expect(read.value("meter_with_dots") == -2.25)
        #expect(read.value("gauge") == .infinity)
        #expect(read.value("wait_seconds_bucket", ["lane": "p-1", "le": "0.005"]) == 2)
        #expect(read.value("wait_seconds_count", ["lane": "p-1"]) == 4)
        #expect(read.value("wait_seconds_sum", ["lane": "p-1"]) == 30.044)
    }

    @Test func `a name has one type, and what is destroyed is no longer written`() {
        let registry = PrometheusRegistry()
        let meter = Meter(label: "things", dimensions: [("a", "b")], factory: registry)
        meter.set(1)
        Recorder(label: "things", dimensions: [], aggregate: true, factory: registry).record(1)
        #expect(ExpositionGrammar(registry.text()).faults == [])
        #expect(ExpositionGrammar(registry.text()).families["things"]?.type == "gauge")
        meter.destroy()
        #expect(registry.text() == "")
    }

    @Test func `answers are counted by what they say, with no token in sight`() throws {
        let registry = PrometheusRegistry(helps: ServiceMetrics.helps)
        var campaign = Campaign(name: "c", topic: "com.example.wendercast", pushType: .alert, template: "t")
        campaign.pushType = .alert
        var meter = SendMeter(campaign, lane: "production-2", factory: registry)
        var status = LaneStatus()
        status.inFlight = 17
        status.streamLimit = 1000
        let results: [PushResult] = [
            .answered(PushResponse(status: 200)), .answered(PushResponse(status: 200)),
            .answered(PushResponse(status: 410, reason: .unregistered)),
            .answered(PushResponse(status: 418, reason: .other("Teapot 123"))), .unknown(.deadline), .notSent(.stopped),
        ]
        meter.record(results.map { PushCompletion(tag: 0, result: $0, latencyMicroseconds: 4_000) }, status)
        let read = ExpositionGrammar(registry.text())
        #expect(read.faults == [])
        func pushes(_ status: String, _ reason: String) -> Double? {
            read.value(
                "fanfare_pushes_total",
                [
                    "topic": "com.example.wendercast", "environment": "production", "push_type": "alert",
                    "status": status, "reason": reason,
                ])
        }
        #expect(pushes("200", "") == 2)
        #expect(pushes("410", "Unregistered") == 1)
        #expect(pushes("418", "other") == 1)
        #expect(pushes("unknown", "DeadlineExceeded") == 1)
        #expect(pushes("not_sent", "Stopped") == 1)
        let lane = ["topic": "com.example.wendercast", "environment": "production", "lane": "production-2"]
        #expect(read.value("fanfare_lane_in_flight", lane) == 17)
        #expect(read.value("fanfare_lane_stream_limit", lane) == 1000)
        meter.end()
        #expect(ExpositionGrammar(registry.text()).value("fanfare_lane_in_flight", lane) == nil)
    }

    @Test func `what the store knows is written as gauges`() {
        var observation = StoreObservation(
            runs: [.finished: 3, .running: 1, .paused: 5],
            queues: [.init(run: 4, campaign: "new-podcast", pending: 7, leased: 2, overdue: .milliseconds(1500))],
            logBytes: 4096)
        observation.halts = [.breaker: 1, .late: 2]
        observation.webhookMessages = 4
        observation.oldestWebhookMessage = Timestamp(milliseconds: 2_000)
        observation.openApprovals = 6
        observation.unreadableRuns = 2
        observation.backedUpAt = Timestamp(milliseconds: 1_500)
        observation.beganAt = Timestamp(milliseconds: 500)
        let result = ObservationResult(observation, now: Timestamp(milliseconds: 12_000))
        let read = ExpositionGrammar(PrometheusRegistry().text(with: GaugeFamily.of(result)))
        #expect(read.faults == [])
        #expect(read.value("fanfare_runs", ["state": "finished"]) == 3)
        #expect(read.value("fanfare_runs", ["state": "scheduled"]) == 0)
        #expect(read.value("fanfare_runs_paused", ["reason": "late"]) == 2)
        #expect(read.value("fanfare_runs_paused", ["reason": "unreachable"]) == 0)
        #expect(read.value("fanfare_runs_paused", ["reason": "person"]) == 2)
        #expect(read.value("fanfare_runs_unreadable") == 2)
        #expect(read.value("fanfare_webhook_oldest_message_seconds") == 10)
        #expect(read.value("fanfare_webhook_messages") == 4 && read.value("fanfare_approvals_open") == 6)
        #expect(read.value("fanfare_last_backup_timestamp_seconds") == 1.5)
        #expect(read.value("fanfare_store_began_timestamp_seconds") == 0.5)
        #expect(read.value("fanfare_queue_pending", ["run": "4", "campaign": "new-podcast"]) == 7)
        #expect(read.value("fanfare_queue_overdue_seconds", ["run": "4", "campaign": "new-podcast"]) == 1.5)
    }

    private static var sharing: SharingResult {
        func sender(_ state: SenderOnRecord.State) -> SenderOnRecord {
            SenderOnRecord(
                name: "web1:1:16:e", term: 1, since: Timestamp(milliseconds: 0), heardAt: Timestamp(milliseconds: 0),
                state: state, isCoordinator: false, facts: SenderFacts())
        }
        var server = ServerObservation()
        server.oldestTransaction = .init(age: .milliseconds(90_500), who: "session 1")
        (server.connections, server.connectionsMax, server.bytes) = (31, 100, 123_456_789_012)
        server.tables = [
            .init(
                name: "delivery_7", liveRows: 10, deadRows: 4, bytes: 8_192,
                autovacuumedAt: Timestamp(milliseconds: 1_800_000_000_500)),
            .init(name: "lease", liveRows: 1, deadRows: 2, bytes: 16_384, autovacuumedAt: nil),
        ]
        return SharingResult(senders: [sender(.alive), sender(.alive), sender(.gone)], server: server)
    }

    @Test func `a store that machines share has its senders, and what its server is to be watched for`() {
        let read = ExpositionGrammar(PrometheusRegistry().text(with: GaugeFamily.of(Self.sharing)))
        #expect(read.faults == [])
        #expect(["alive", "silent", "gone"].map { read.value("fanfare_senders", ["state": $0]) } == [2, 0, 1])
        let database = { (name: String) in read.value("fanfare_database_\(name)") }
        #expect(database("oldest_transaction_seconds") == 90.5)
        #expect(database("connections") == 31 && database("connections_max") == 100)
        #expect(database("bytes") == 123_456_789_012)
        let table = { (name: String, table: String) in read.value("fanfare_database_\(name)", ["table": table]) }
        #expect(table("dead_rows", "lease") == 2 && table("live_rows", "delivery_7") == 10)
        #expect(table("table_bytes", "delivery_7") == 8_192)
        #expect(table("last_autovacuum_timestamp_seconds", "delivery_7") == 1_800_000_000.5)
        #expect(table("last_autovacuum_timestamp_seconds", "lease") == nil)
    }

    @Test func `every name stands in the documentation`() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Sources/Web/Web.docc/Web.md"), encoding: .utf8)
        let store = StoreObservation(runs: [:], queues: [], logBytes: 0)
        let families =
            GaugeFamily.of(ObservationResult(store, now: Timestamp(milliseconds: 0)))
            + GaugeFamily.of(Self.sharing)
        let atTheDaemon = [
            "fanfare_provider_token_age_seconds", "fanfare_store_up", "fanfare_coordinator",
            "fanfare_stop_in_force",
        ]
        for name in ServiceMetrics.helps.keys + families.map(\.name) + atTheDaemon {
            #expect(page.contains("`\(name)`") || page.contains("`\(name){"), "\(name)")
        }
    }
}
