import Campaigns
import Foundation
import Model
import SendingScene
import Store
import TestSupport
import Testing
@testable import Web

struct ReportPageTests {
    static func report(name: String = "new-podcast") throws -> ReportResult {
        let quoted = try #require(String(data: JSONEncoder().encode(name), encoding: .utf8))
        let counts = { (audience: Int, accepted: Int, rest: Int) in
            """
            {"accepted": \(accepted), "audience": \(audience), "leased": 0, "pending": 0, "rejected": \(rest),
             "suppressed": \(audience - accepted - 2 * rest), "unknown": \(rest)}
            """
        }
        let reason = "[{\"count\": 1200, \"reason\": \(quoted), \"status\": 410}]"
        let slice = "[{\"counts\": \(counts(500, 400, 10)), \"name\": \(quoted)}]"
        return try ResultJSON.value(
            ReportResult.self,
            from: """
                {"attempts": 24000, "by_environment": \(slice), "by_locale": \(slice), "by_variant": \(slice),
                 "by_app_version": \(slice), "by_zone": \(slice), "by_country": \(slice), "by_wave": \(slice),
                 "by_stage": \(slice),
                 "campaign": \(quoted), "counts": \(counts(20000, 17000, 1200)), "created_at": "2026-11-21T08:59:00Z",
                 "devices_gone": 62, "devices_suspended": 63, "finished_at": "2026-11-21T09:04:00Z",
                 "frozen": true, "halt": "late", "occurrence": "episode-42", "possible_duplicates": 61, "rejected": \(reason),
                 "run": 7, "started_at": "2026-11-21T09:00:00.250Z", "state": "paused", "state_reason": \(quoted),
                 "suppressed": \(reason), "test": true, "unknown": \(reason)}
                """)
    }

    private static func page(
        name: String = "new-podcast", audienceSQL: String? = nil, prunedAt: Timestamp? = nil,
        change: (inout ReportResult) -> Void = { _ in }
    ) throws -> ReportPage {
        var report = try report(name: name)
        change(&report)
        return try ReportPage(
            report, ChartTests.full, waves: [WaveBar(startsAt: ChartTests.start, devices: 5, zones: [name])],
            definition: definition(audienceSQL), people: people, prunedAt: prunedAt, madeAt: ChartTests.start,
            version: "9.9")
    }

    private static func definition(_ audienceSQL: String?) throws -> RunDefinition {
        var template = Template(name: "t")
        let locale = try #require(LocaleTag("en"))
        template.alert = .localized([
            .init(
                locale: locale, title: try TemplateText(parsing: "New: {{title}}"), subtitle: nil,
                body: try TemplateText(parsing: "Out <now>"))
        ])
        var campaign = Campaign(
            name: "new-podcast", topic: "com.example.wendercast", pushType: .alert, template: "t")
        campaign.audienceSQL = audienceSQL
        return RunDefinition(
            campaign: campaign, template: template, variables: ["title": "The Quiet Reef"],
            plannedAt: ChartTests.start)
    }

    private static var people: RunPeople {
        var people = RunPeople()
        (people.createdBy, people.authors, people.approvedBy) = ("anna", ["anna"], ["ben"])
        return people
    }

    @Test func `the person who started a run is known after many events`() async throws {
        try await WebScene.with { scene in
            let sending = scene.sending
            let run = try await sending.start(try sending.definition())
            for _ in 0..<120 {
                try await sending.store.recordEvent(
                    kind: .runRecovered, run: run.id, actor: "a", detail: "again", now: sending.clock.now)
            }
            #expect(try await RunPeople(run, scene.webConsole.cases).createdBy == "test")
        }
    }

    @Test func `the page shows what was sent, to whom, and the people behind it`() throws {
        let html = try Self.page().html()
        for part in [
            "<h2>What was sent</h2>", "New: The Quiet Reef", "Out &lt;now&gt;", "<dt>title</dt>",
            "<dd>com.example.wendercast</dd>", "every device of the app", "<dt>Approved by</dt><dd>ben</dd>",
            "<dt>Started by</dt><dd>anna</dd>",
        ] { #expect(html.contains(part), "\(part)") }
    }

    @Test func `every key that a template names is in its model`() throws {
        // The phones have an example of their own.
        let texts = PageTemplate.texts.merging(["campaign-phones": ""]) { $1 }
        // An audience without a sentence is shown as its code.
        let share = #"{"devices": 1, "of": 2, "percent": 50, "low": 9.45, "high": 90.55}"#
        let page = try Self.page(audienceSQL: "SELECT id FROM device_view") { report in
            report.frozen = false
            report.feedback = try? ResultJSON.value(
                FeedbackReport.self,
                from: """
                    {"accepted": 2, "actions": [], "curve": [], "dismissed": \(share), "opened": \(share),
                     "variants": []}
                    """)
        }
        let keys = TemplateKeys(page, "report", in: texts)
        #expect(keys.faults == [])
    }

    @Test(arguments: [
        "{{titel}}", "{{#states}}{{nam}}{{/states}}", "{{>repot-sum}}", "{{#closes}}x", "{{#stats}}{{/stats}}",
    ])
    func `a key that is not in the model is found`(template: String) throws {
        #expect(TemplateKeys(try Self.page(), "it", in: ["it": template]).faults.count >= 1)
    }

    @Test func `the page says what the report says`() throws {
        let html = try Self.page().html()
        for part in [
            "<h1>new-podcast</h1>", "run 7, a test to one device",
            "<span class=\"state paused\">paused</span>: new-podcast",
            "<dd>episode-42</dd>",
            "<dt>Started (UTC)</dt><dd>2026-11-21 09:00:00</dd>", "<dd>3m59s</dd>", "<dd>24,000</dd>",
            "accepted</span></th><td>17,000</td><td>85.0 %</td>", "410 new-podcast</th><td>1,200</td><td>6.0 %</td>",
            "audience</th><td>20,000</td>", "The counts balance", "By environment", "By locale", "By variant",
            "Possible duplicates: 61", "May have arrived: unknown",
            "62 with a token that is gone, 63 suspended", "nothing of this run was pruned",
            "Outcomes over time", "Latency of APNs over time", "Waves", "Suppressed by reason",
            "Accepted share by locale", "Accepted share by variant", "fanfare 9.9",
        ] { #expect(html.contains(part), "\(part)") }
    }

    @Test func `the page needs nothing else and runs nothing, whatever is written in names`() throws {
        let html = try Self.page(name: ChartTests.hostile).html()
        for word in ["<script", "<link", "<img", "<iframe", "src=", "href", "@import", "url(", "style=\"", " onload="] {
            #expect(!html.contains(word), "\(word)")
        }
        #expect(html.contains("default-src 'none'") && html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"))
    }

    @Test func `what was pruned, an open sum and a run not begun are said`() throws {
        let pruned = try Self.page(prunedAt: ChartTests.start).html()
        #expect(pruned.contains("were pruned on 2026-11-21"))
        let open = try Self.page { $0.counts.accepted -= 1 }.html()
        #expect(open.contains("The counts do not balance") && !open.contains("The counts balance"))
        let new = try Self.page { report in
            (report.startedAt, report.finishedAt, report.stateReason) = (nil, nil, nil)
            (report.byLocale, report.byVariant, report.byEnvironment) = ([], [], [])
            report.possibleDuplicates = 0
            report.mayHaveArrived = 0
        }.html()
        #expect(new.contains("<dd>not yet</dd>") && new.contains("No possible duplicates"))
        #expect(new.contains("No rejected or suppressed delivery had an attempt whose response was lost."))
        let doubtful = try Self.page { $0.mayHaveArrived = 1_234 }.html()
        #expect(doubtful.contains("May have arrived: 1,234 ended rejected or suppressed"))
        #expect(!new.contains("By locale") && !new.contains("Accepted share"))
    }

    @Test func `a page with 360 slots stays small`() throws {
        #expect(try Self.page().html().utf8.count < 96 * 1024)
    }

    @Test func `a table of CSV has a heading and as many values in every line`() throws {
        let report = try Self.report(name: "a,\"b\"\nc")
        for table in ReportTable.allCases where table != .deliveries {
            let csv = table.csv(report, ChartTests.timeline([ChartTests.slot(0, accepted: 3, p50: 1.5)]))
            let widths = CSVText.records(csv).map(\.count)
            let lines = table == .reasons ? 4 : [.feedback, .opens].contains(table) ? 1 : 2
            #expect(widths.count == lines && Set(widths).count == 1, "\(csv)")
        }
        #expect(ReportTable.locales.csv(report, ChartTests.timeline([])).hasPrefix("locale,audience,accepted,"))
        #expect(
            ReportTable.timeline.csv(report, ChartTests.timeline([ChartTests.slot(0, accepted: 3, p50: 1.5)]))
                == """
                starts_at,seconds,accepted,retried,rejected,unknown,suppressed,p50_ms,p99_ms,reopened
                2026-11-21T09:00:00Z,10,3,0,0,0,0,1.5,,0

                """)
        let environments = CSVText.records(ReportTable.environments.csv(report, ChartTests.timeline([])))
        #expect(environments[1].suffix(3) == ["0.952381", "0.927596", "0.968965"], "\(environments)")
    }

    @Test func `what people did is a table of figures, and one of opens by minute`() throws {
        var report = try Self.report(name: "a")
        let share = { (devices: Int) in
            "{\"devices\": \(devices), \"of\": 40, \"percent\": 5, \"low\": 1.38, \"high\": 16.5}"
        }
        report.feedback = try ResultJSON.value(
            FeedbackReport.self,
            from: """
                {"accepted": 40, "actions": [{"name": "play, now", "share": \(share(3))}],
                 "curve": [{"minute": 0, "opened": 2}, {"minute": 60, "opened": 1}], "dismissed": \(share(1)),
                 "opened": \(share(2)), "variants": [{"name": "B", "share": \(share(2))}]}
                """)
        #expect(
            ReportTable.feedback.csv(report, ChartTests.timeline([])) == """
                figure,name,devices,of,share,share_from,share_to
                opened,,2,40,0.050000,0.013800,0.165000
                dismissed,,1,40,0.050000,0.013800,0.165000
                action,"play, now",3,40,0.050000,0.013800,0.165000
                opened_by_variant,B,2,40,0.050000,0.013800,0.165000

                """)
        #expect(ReportTable.opens.csv(report, ChartTests.timeline([])) == "minute,opened\n0,2\n60,1\n")
    }

    @Test func `a table that does not exist is refused with the nearest`() {
        #expect(throws: ReportTable.Unknown.self) { try ReportTable(named: "timelin") }
        let message = { (name: String) in
            do { return "\(try ReportTable(named: name))" } catch { return "\(error)" }
        }
        #expect(message("timelin") == "unknown table \"timelin\"; did you mean \"timeline\"?")
        #expect(message("zzzzzzzzz").contains("known are summary, reasons,"))
    }
}

/// Reads CSV with quoted values.
enum CSVText {
    static func records(_ text: String) -> [[String]] {
        var records: [[String]] = []
        var (record, value, isQuoted): ([String], String, Bool) = ([], "", false)
        for character in text {
            switch character {
            case "\"": isQuoted.toggle()
            case "," where !isQuoted, "\n" where !isQuoted:
                record.append(value)
                value = ""
                if character == "\n" {
                    records.append(record)
                    record = []
                }
            default: value.append(character)
            }
        }
        return records
    }
}
