import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// What people did with a broadcast: from the reference in each push to the tables that an analyst recomputes.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Feedback on a broadcast` {
    private static let devices = 400

    private func place() throws -> Installation {
        let place = try Installation(devices: Self.devices) { options in
            options.logsPayloads = true
        }
        try place.importDevices()
        try place.writeWeekend("conversion: {event: played, within: 24h}")
        let validated = try place.fanfare("validate", "campaigns/weekend.yaml")
        try #require(validated.status == 0, "\(validated.errors)\(validated.output)")
        let run = try place.fanfare("run", "weekend", "--occurrence", "1", "--yes")
        try #require(run.status == 0, "\(run.errors)")
        return place
    }

    /// The reference in each push that the simulator accepted.
    private func references(_ place: Installation) throws -> [String] {
        try place.simulator.log().filter { $0.status == 200 }.map { entry in
            let payload = try #require(entry.payload)
            let object = try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]
            let fanfare = try #require(object?["fanfare"] as? [String: Any])
            #expect(Set(fanfare.keys) == ["r"])
            return try #require(fanfare["r"] as? String)
        }
    }

    private func report(_ place: Installation) throws -> [String: Any] {
        let text = try place.fanfare("report", "weekend", "--format", "json").output
        return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    private static func id(_ number: Int) -> String { "00000000-0000-4000-8000-" + String(format: "%012d", number) }

    /// Opens of the first references, and conversions of some devices.
    private func writeReports(_ place: Installation, _ references: [String], opens: Int, played: Int) throws {
        var lines = references.prefix(opens).enumerated().map { number, reference in
            #"{"id":"\#(Self.id(number))","type":"opened","ref":"\#(reference)"}"#
        }
        lines += (0..<played).map { number in
            #"{"id":"\#(Self.id(9_000 + number))","type":"converted","name":"played","value":2.5,"#
                + #""installation_id":"install-\#(number)","topic":"\#(Installation.topic)"}"#
        }
        try place.folder.write(lines.joined(separator: "\n") + "\n", to: "reports.jsonl")
    }

    @Test func `each push has a reference of its own, and reports by it are counted once`() throws {
        let place = try place()
        let references = try references(place)
        #expect(Set(references).count == references.count && references.allSatisfy { $0.utf8.count == 22 })
        try writeReports(place, references, opens: 30, played: 50)
        let first = try place.fanfare("events", "import", "reports.jsonl")
        #expect(first.status == 0, "\(first.errors)")
        #expect(first.output.contains("80 reports: 80 recorded, 0 recorded before, 0 rejected"), "\(first.output)")
        let again = try place.fanfare("events", "import", "reports.jsonl")
        #expect(again.output.contains("0 recorded, 80 recorded before"), "\(again.output)")
        // Another store made these, or somebody guessed.
        try place.folder.write(
            "id,type,ref\n\n\(Self.id(1)),opened,\(String(repeating: "A", count: 22))\n", to: "forged.csv")
        let forged = try place.fanfare("events", "import", "forged.csv")
        #expect(
            forged.status == 65 && forged.output.contains("line 3: ref is not the reference of a push"),
            "\(forged.output)")
        let rejects = try String(contentsOfFile: place.folder.file("forged.csv.rejects.csv"), encoding: .utf8)
        #expect(rejects.contains("\n3,\"ref is not the reference of a push"), "\(rejects)")

        let feedback = try #require(try report(place)["feedback"] as? [String: Any])
        let opened = try #require(feedback["opened"] as? [String: Any])
        #expect(opened["devices"] as? Int == 30 && opened["of"] as? Int == references.count)
        let text = try place.fanfare("report", "weekend").output
        #expect(text.contains("What people did") && text.contains("(30 of \(references.count) accepted)"), "\(text)")
        #expect(text.contains("No winner yet") || text.contains("was opened more often"), "\(text)")
        let page = try place.fanfare("report", "weekend", "--format", "html").output
        #expect(page.contains("<h2>What people did</h2>"))
    }

    @Test func `a comparison with the held-out devices is final when its time has passed`() throws {
        let place = try place()
        try writeReports(place, [], opens: 0, played: Self.devices)
        #expect(try place.fanfare("events", "import", "reports.jsonl").status == 0)
        let early = try place.fanfare("report", "weekend").output
        #expect(early.contains("the first figures come 1h after the start"), "\(early)")
        try place.ageRuns(byHours: 25)
        try place.change("UPDATE run SET finished_at = finished_at - 90000000")
        try place.change("UPDATE feedback_event SET happened_at = happened_at - 90000000")
        let final = try place.fanfare("report", "weekend").output
        #expect(final.contains("Goal") && final.contains("Chance alone may explain"), "\(final)")
        let goal = try #require((try report(place)["feedback"] as? [String: Any])?["conversion"] as? [String: Any])
        let (treated, heldOut) = (goal["treated"] as? [String: Any], goal["held_out"] as? [String: Any])
        #expect(goal["is_final"] as? Bool == true)
        #expect((treated?["of"] as? Int ?? 0) + (heldOut?["of"] as? Int ?? 0) == Self.devices)
        #expect(treated?["devices"] as? Int == treated?["of"] as? Int)
    }

    @Test func `metrics count the reports by type and result`() throws {
        let place = try place()
        let references = try references(place)
        let daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let address = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:\d+)/)).1
        let zero = try LocalPage.text("http://\(address)/metrics")
        #expect(zero.contains(#"fanfare_events_total{result="recorded",type="opened"} 0"#), "\(zero)")
        let made = try place.fanfare("tokens", "create", "app", "--role", "registrar", "--json").output
        let token = String(try #require(made.firstMatch(of: /fanfare_[\w-]+/)).0)
        let lines = [0, 1, 1].enumerated().map { number, reference in
            #"{"id":"\#(Self.id(number))","type":"opened","ref":"\#(references[reference])"}"#
        }
        let unknown =
            #"{"id":"\#(Self.id(9))","type":"app_started","installation_id":"x","topic":"\#(Installation.topic)"}"#
        let answer = try LocalPage.post(
            "http://\(address)/api/v1/events", (lines + [unknown, "{}"]).joined(separator: "\n"), token: token)
        #expect(answer.contains(#""recorded" : 2"#), "\(answer)")
        let text = try LocalPage.text("http://\(address)/metrics")
        for line in [
            #"fanfare_events_total{result="recorded",type="opened"} 2"#,
            #"fanfare_events_total{result="repeated",type="opened"} 1"#,
            #"fanfare_events_total{result="rejected",type="app_started"} 1"#,
            #"fanfare_events_total{result="rejected",type="unreadable"} 1"#, "fanfare_opens_total 2",
        ] { #expect(text.contains(line + "\n"), "\(line)") }
        daemon.signal(SIGTERM)
        _ = try daemon.finish()
    }

    @Test func `reports that come while a run is sent survive a kill, and count once`() throws {
        let place = try place()
        let references = try references(place)
        let made = try place.fanfare("tokens", "create", "app", "--role", "registrar", "--json").output
        let token = String(try #require(made.firstMatch(of: /fanfare_[\w-]+/)).0)
        var daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let address = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:\d+)/)).1
        let lines = references.prefix(40).enumerated().map { number, reference in
            #"{"id":"\#(Self.id(number))","type":"opened","ref":"\#(reference)"}"#
        }
        let report = { (lines: ArraySlice<String>) in
            try LocalPage.post("http://\(address)/api/v1/events", lines.joined(separator: "\n"), token: token)
        }
        #expect(try report(lines.prefix(10)).contains(#""recorded" : 10"#))
        // The rest is never answered, so that the run is sent for as long as the daemon lives.
        let sent = place.simulator.counts().requests
        place.simulator.setFaults([FaultRule(when: .always, action: .silence)])
        let run = try place.fanfare("run", "weekend", "--occurrence", "2", "--yes", "--again", "--no-wait")
        #expect(run.status == 0, "\(run.errors)")
        try daemon.wait { place.simulator.counts().requests > sent }
        // Ten of them were counted before, and ten are sent twice.
        for _ in 0..<2 { #expect(try report(lines.prefix(30)).contains(#""recorded" : 30"#)) }
        let queue = try place.patientQueue()
        let waiting = { try queue.read { try Int.fetchOne($0, sql: "SELECT sum(events) FROM waiting_feedback") } }
        let counted = { try queue.read { try Int.fetchOne($0, sql: "SELECT sum(events) FROM feedback_count") } }
        #expect(try waiting() == 60 && counted() == 10)
        daemon.signal(SIGKILL)
        _ = try daemon.finish()
        #expect(try waiting() == 60 && counted() == 10)
        place.simulator.setFaults([])
        daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { (try? waiting()) == .some(nil) && daemon.errors.contains("run ended") }
        #expect(try counted() == 30)
        #expect(try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM feedback_event") } == 30)
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
        // An export has what waits, too.
        let rows = try place.fanfare("export", "events", "--format", "csv", "-o", "csv").output
        #expect(rows.contains("30 rows"), "\(rows)")
        // A daemon that is stopped in the middle of a run leaves nothing uncounted.
        let before = place.simulator.counts().requests
        place.simulator.setFaults([FaultRule(when: .always, action: .silence)])
        daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let later = try #require(daemon.errors.firstMatch(of: /address=(127\.0\.0\.1:\d+)/)).1
        let third = try place.fanfare("run", "weekend", "--occurrence", "3", "--yes", "--again", "--no-wait")
        #expect(third.status == 0, "\(third.errors)")
        try daemon.wait { place.simulator.counts().requests > before }
        let last = try LocalPage.post(
            "http://\(later)/api/v1/events", lines.suffix(10).joined(separator: "\n"), token: token)
        #expect(try last.contains(#""recorded" : 10"#) && waiting() == 10)
        daemon.signal(SIGTERM)
        _ = try daemon.finish()
        #expect(try waiting() == nil && counted() == 40)
        try queue.close()
        // An import destroys no file that it was given for its unusable lines by mistake.
        try place.folder.write("id,type,ref\nx,opened,y\n", to: "bad.csv")
        let spoiled = try place.fanfare("events", "import", "bad.csv", "--rejects", "fanfare.sqlite")
        #expect(spoiled.status != 0 && spoiled.errors.contains("holds something else"), "\(spoiled.errors)")
        for _ in 0..<2 { #expect(try place.fanfare("events", "import", "bad.csv", "--rejects", "r.csv").status == 65) }
        #expect(try place.fanfare("status").status == 0)
        // Nothing goes to where another person's link leads.
        for name in ["linked", "elsewhere"] {
            try FileManager.default.createDirectory(atPath: place.folder.file(name), withIntermediateDirectories: true)
        }
        try FileManager.default.createSymbolicLink(
            atPath: place.folder.file("linked/events"), withDestinationPath: place.folder.file("elsewhere"))
        let linked = try place.fanfare("export", "events", "-o", "linked")
        #expect(linked.status != 0 && linked.errors.contains("linked/events is a symbolic link"), "\(linked.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.folder.file("elsewhere")) == [])
    }

    private static var day: Int { Int(Date().timeIntervalSince1970) / 86_400 }

    /// Everything in a report comes out of the exported tables, as pandas and DuckDB read them.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["PARQUET_PYTHON"] != nil))
    func `the report is recomputed from the export`() throws {
        let place = try place()
        let references = try references(place)
        try writeReports(place, references, opens: 40, played: 60)
        #expect(try place.fanfare("events", "import", "reports.jsonl").status == 0)
        for table in ["runs", "deliveries", "events", "devices", "timeline"] {
            let written = try place.fanfare("export", table, "-o", "warehouse", "--json")
            #expect(written.status == 0, "\(table): \(written.errors)")
            for format in ["csv", "jsonl"] {
                let other = try place.fanfare("export", table, "--format", format, "-o", format, "--json")
                #expect(other.output == written.output, "\(table) \(format): \(other.errors)")
            }
        }
        #expect(try place.fanfare("audit").output.contains("devices_exported"))
        // A later export of a part of the day does not cut the day's files.
        for table in ["runs", "deliveries", "events", "timeline"] {
            // Of one day: the next one may begin between the two.
            var (outputs, day) = ([String](), -1)
            while day != Self.day {
                day = Self.day
                outputs = try [[], ["--since", "1ms"]].map { more in
                    try place.fanfare(["export", table] + more + ["-o", "warehouse", "--json"]).output
                }
            }
            #expect(outputs[0] == outputs[1], "\(table)")
        }
        let single = try place.fanfare("export", "events", "--run", "1", "-o", "warehouse")
        #expect(single.status == 64 && single.errors.contains("--run is for deliveries and timeline"))
        let text = try place.fanfare("report", "weekend", "--format", "json").output
        try place.folder.write(text, to: "report.json")
        let python = ProcessInfo.processInfo.environment["PARQUET_PYTHON"] ?? ""
        let script = Installation.root.appending(path: "Tests/EndToEndTests/recompute_report.py").path
        let checked = try Program.run(
            [script, place.folder.path], in: place.folder, program: URL(fileURLWithPath: python))
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
        #expect(checked.output.contains("the same"), "\(checked.output)")
    }
}
