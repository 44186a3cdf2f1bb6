import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A run's report` {
    /// A finished run, one of whose devices APNs has never heard of.
    private func place() throws -> Installation {
        let place = try Installation(devices: 12)
        try place.importDevices()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        return place
    }

    @Test func `is one page of HTML with the same numbers, which needs no other file`() throws {
        let place = try place()
        let shown = try place.fanfare("report", "new-podcast", "--format", "html")
        #expect(shown.status == 0, "\(shown.errors)")
        #expect(shown.output.hasPrefix("<!doctype html>") && shown.output.hasSuffix("</html>\n"))
        #expect(
            shown.output.contains("accepted</span></th><td>12</td><td>100.0 %</td>"), "\(shown.output.suffix(4000))")
        #expect(!shown.output.contains("<script") && !shown.output.contains("href="))
        #expect(shown.output.contains("nothing of this run was pruned"))
        let written = try place.fanfare("report", "1", "--format", "html", "-o", "report.html")
        #expect(written.status == 0 && written.output.isEmpty)
        #expect(try place.folder.read("report.html").contains("new-podcast, occurrence a: report"))
    }

    @Test func `says in HTML that its outcomes by device were pruned`() throws {
        let place = try place()
        #expect(try place.fanfare("prune-outcomes", "--older-than", "1ms", "--yes").status == 0)
        let shown = try place.fanfare("report", "1", "--format", "html")
        #expect(shown.output.contains("The outcomes by device were pruned on"), "\(shown.errors)")
    }

    @Test(
        arguments: [
            ("summary", "run,campaign,occurrence,state", 1), ("reasons", "state,status,reason,count", 0),
            ("environments", "environment,audience,accepted", 1), ("locales", "locale,audience,accepted", 1),
            ("variants", "variant,audience,accepted", 0), ("timeline", "starts_at,seconds,accepted", nil),
            ("deliveries", "device,installation_id,token", 12),
        ] as [(String, String, Int?)])
    func `is CSV by table`(table: String, heading: String, lines: Int?) throws {
        let place = try place()
        let result = try place.fanfare("report", "1", "--format", "csv", "--table", table)
        #expect(result.status == 0 && result.output.hasPrefix(heading), "\(result.output) \(result.errors)")
        if let lines { #expect(result.output.split(separator: "\n").count == lines + 1, "\(result.output)") }
        if table == "deliveries" {
            #expect(try place.fanfare("report", "1", "--format", "csv").output == result.output)
        }
    }

    @Test func `names the table that was meant, and those there are`() throws {
        let place = try Installation(devices: 1)
        let wrong = try place.fanfare("report", "1", "--format", "csv", "--table", "locale")
        #expect(wrong.status == 64 && wrong.errors.contains("unknown table \"locale\"; did you mean \"locales\"?"))
        let alone = try place.fanfare("report", "1", "--table", "locales")
        #expect(alone.status == 64 && alone.errors.contains("--table needs --format csv"), "\(alone.errors)")
        let help = try place.fanfare("report", "--help").output
        for table in ["summary", "reasons", "environments", "locales", "variants", "timeline", "deliveries"] {
            #expect(help.contains(table))
        }
    }
}
