import Campaigns
import Foundation
import Model
import Sending
import Store
import TestSupport
import Testing
import Web

@testable import fanfare

/// Alerts, dashboard, runbook and documents speak of what there is.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Monitoring` {
    private static func text(_ path: String) throws -> String {
        try String(contentsOf: Installation.root.appending(path: path), encoding: .utf8)
    }

    /// What a daemon answers before it has sent anything. To be read on a thread of its own.
    private static let fresh = Result {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let address = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:[0-9]+)/)?.1)
        var text = ""
        // What was read is taken over a moment later.
        try daemon.wait {
            text = (try? LocalPage.text("http://\(address)/metrics")) ?? ""
            return text.contains("fanfare_campaigns{kind=\"loaded\"} 3")
        }
        daemon.signal(SIGTERM)
        _ = try daemon.finish()
        return text
    }

    /// Names of all families: those of a fresh daemon, those that begin with the first run, and those of a database.
    private static func known() throws -> Set<String> {
        let living = try fresh.get().matches(of: /TYPE ([a-z_]+)/).map { String($0.1) }
        var server = ServerObservation()
        server.tables = [
            .init(name: "t", liveRows: 1, deadRows: 1, bytes: 1, autovacuumedAt: Timestamp(milliseconds: 0))
        ]
        let database = GaugeFamily.of(SharingResult(senders: [], server: server)).map(\.name)
        return Set(living + ServiceMetrics.helps.keys + database)
            .union(["fanfare_certificate_expiry_timestamp_seconds", "fanfare_queue_pending", "fanfare_queue_leased"])
            .union(["fanfare_queue_overdue_seconds", "fanfare_provider_token_age_seconds"])
    }

    @Test(arguments: [
        "systemd/alerts.yml", "systemd/grafana.json", "systemd/runbook.md", "Sources/Web/Web.docc/Web.md",
    ])
    func `names only metrics that exist`(file: String) async throws {
        try await OwnThread.run {
            let known = try Self.known()
            let named = try Self.text(file).matches(of: /\b(?:fanfare|process)_[a-z_]*[a-z]/).map { String($0.0) }
            if file != "systemd/runbook.md" { #expect(named.count > 20) }
            for name in Set(named) {
                let family = ["_bucket", "_sum", "_count"].first(where: name.hasSuffix).map {
                    String(name.dropLast($0.count))
                }
                #expect(
                    known.contains(name) || family.map(known.contains) == true || name == "fanfare_database", "\(name)")
            }
        }
    }

    @Test func `describes every metric in the documents`() async throws {
        try await OwnThread.run {
            let document = try Self.text("Sources/Web/Web.docc/Web.md")
            for name in try Self.known() { #expect(document.contains("`\(name)"), "\(name)") }
        }
    }

    /// An increase from nothing is no increase: `rate()` would not see the first failure.
    @Test func `has every series whose labels are known from the start`() async throws {
        try await OwnThread.run {
            let text = try Self.fresh.get()
            var expected = [
                "fanfare_reloads_total{result=\"bad\"} 0", "fanfare_store_waiting 0", "fanfare_sender_too_slow 0",
                "fanfare_schedule_lag_seconds 0",
                "fanfare_store_up 1", "fanfare_runs_paused{reason=\"person\"} 0", "fanfare_approvals_open 0",
                "fanfare_runs_unreadable 0",
                "fanfare_webhook_messages 0", "fanfare_webhook_oldest_message_seconds 0", "fanfare_feeds_failing 0",
                "fanfare_last_backup_timestamp_seconds 0", "fanfare_last_good_verify_timestamp_seconds 0",
                "fanfare_store_began_timestamp_seconds ",
                "fanfare_files_with_problems 0", "fanfare_campaigns{kind=\"loaded\"} 3",
                "fanfare_outcomes_total{campaign=\"new-podcast\",outcome=\"unknown\"} 0",
                "fanfare_pushes_total{environment=\"production\",push_type=\"alert\",reason=\"\",status=\"200\",topic=",
                "fanfare_credential_usable{environment=\"production\",topic=\"\(Installation.topic)\"} 1",
                "fanfare_build_info{version=\"",
                "fanfare_http_requests_total{kind=\"api\",status=\"200\"} 0", "fanfare_push_latency_seconds_count{",
                "# TYPE process_cpu_seconds_total counter",
            ]
            expected += RunHalt.allCases.map { "fanfare_runs_paused{reason=\"\($0.rawValue)\"} 0" }
            expected += RunState.allCases.map { "fanfare_runs{state=\"\($0.rawValue)\"} 0" }
            expected += SuppressionReason.allCases.map { "fanfare_suppressed_total{reason=\"\($0.rawValue)\"} 0" }
            for line in expected { #expect(text.contains("\n\(line)"), "\(line)") }
            for name in ["fanfare_disk_free_bytes", "process_resident_memory_bytes", "process_open_fds"] {
                let value = text.firstMatch(of: try Regex("\n\(name) ([0-9]+)", as: (Substring, Substring).self))?.1
                #expect(value.flatMap { Int($0) } ?? 0 > 0, "\(name)")
            }
            let started = text.firstMatch(of: /\nprocess_start_time_seconds ([0-9.]+)/).flatMap { Double($0.1) } ?? 0
            #expect(abs(Date().timeIntervalSince1970 - started) < 3600)
        }
    }

    /// A copy that is sound says nothing about the store.
    @Test func `knows when verify last found every promise of the store kept`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 1)
            try place.importDevices()
            #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
            #expect(try place.fanfare("backup", "copy.sqlite").status == 0)
            let mark = place.folder.file("fanfare.sqlite-senders/verified")
            #expect(try place.fanfare("verify", "--store", "copy.sqlite").status == 0)
            #expect(!FileManager.default.fileExists(atPath: mark))
            #expect(try place.fanfare("verify").status == 0)
            #expect(FileManager.default.fileExists(atPath: mark))
        }
    }

    @Test func `has a heading in the runbook for every alert, exit code, state and halt, and for nothing else`() throws
    {
        let alerts = try Self.text("systemd/alerts.yml").matches(of: /- alert: (\w+)/).map { String($0.1) }
        try #require(alerts.count > 20 && Set(alerts).count == alerts.count)
        let expected =
            alerts.map { "Alert: \($0)" } + ExitStatus.allCases.map { "Exit code \($0.rawValue)" } + ["Exit code 64"]
            + RunState.allCases.map { "Run state: \($0.rawValue)" } + RunHalt.allCases.map { "Halt: \($0.rawValue)" }
        let headings = try Self.text("systemd/runbook.md").matches(of: /(?m)^### (.+)$/).map { String($0.1) }
        #expect(Set(headings) == Set(expected) && headings.count == expected.count)
        let rules = try Self.text("systemd/alerts.yml")
        for alert in alerts { #expect(rules.contains("runbook.md#alert-\(alert.lowercased())\n"), "\(alert)") }
    }

    @Test func `names commands that exist`() throws {
        let words = try Self.text("systemd/runbook.md").matches(of: /fanfare ([a-z][a-z-]+)/).map { String($0.1) }
        let known = Set(try CommandDefinition.fanfare().shown.map(\.commandName))
        let others: Set = ["fanfare"]
        for word in Set(words) {
            #expect(known.union(others).contains(word), "\(word)")
        }
    }

    @Test func `is installed with the paths of the installation`() async throws {
        try await OwnThread.run {
            let folder = try TemporaryDirectory()
            let result = try Program.run(["install", "--prefix", "\(folder.path)/usr"], in: folder)
            #expect(result.status == 0, "\(result.errors)")
            let rules = try folder.read("usr/share/fanfare/monitoring/alerts.yml")
            #expect(
                rules.contains(
                    "runbook_url: file://\(folder.path)/usr/share/doc/fanfare/runbook.md#alert-fanfaredown\n"))
            #expect(try folder.read("usr/share/doc/fanfare/runbook.md").contains("### Halt: unreachable"))
            let dashboard = try folder.read("usr/share/fanfare/monitoring/grafana.json")
            let object = try JSONSerialization.jsonObject(with: Data(dashboard.utf8)) as? [String: Any]
            #expect((object?["panels"] as? [Any])?.isEmpty == false)
        }
    }
}
