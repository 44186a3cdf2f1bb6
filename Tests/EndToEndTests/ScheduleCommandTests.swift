import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The schedule command` {
    private func campaign(_ place: Installation, _ name: String, _ schedule: String) throws {
        try place.folder.write(
            """
            campaign: \(name)
            topic: \(Installation.topic)
            push_type: background
            template: refresh-episodes
            audience: everyone
            variables: {reason: new-episode}
            schedule: \(schedule)

            """,
            to: "campaigns/\(name).yaml")
    }

    @Test func `rehearses a day in the operator's zone and in UTC`() throws {
        let place = try Installation(devices: 1)
        try campaign(place, "morning", "{cron: \"0 9 * * MON-FRI\", zone: Europe/Berlin}")
        try campaign(place, "everywhere", "{at: 2026-12-24T18:00, zone: recipient, unknown_zone: drop}")
        try campaign(place, "sundays", "{cron: \"0 9 * * SUN\", zone: UTC}")
        let zone = ["TZ": "America/New_York"]
        let text = try place.fanfare("schedule", "--on", "2026-12-24", environment: zone)
        #expect(text.status == 0, "\(text.errors)")
        let lines = text.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        #expect(lines[0].hasPrefix("America/New_York") && lines[0].contains("UTC"))
        // In Kiribati it is the 24th already.
        #expect(lines[1].contains("2026-12-23T23:00") && lines[1].contains("everywhere"))
        #expect(lines.contains { $0.contains("2026-12-24T03:00") && $0.contains("2026-12-24T08:00:00Z  morning") })
        #expect(lines.contains { $0.contains("everywhere") && $0.contains("by each device's clock") })
        let json = try place.fanfare("schedule", "morning", "--count", "3", "--json", environment: zone)
        #expect(json.status == 0)
        #expect(json.output.components(separatedBy: "\"campaign\" : \"morning\"").count == 4)
        #expect(try place.fanfare("schedule", "evening").status == 66)
        #expect(try place.fanfare("schedule", "--on", "tomorrow").status == 64)
    }

    @Test func `a start without values is an error until it is given its own`() throws {
        let place = try Installation(devices: 1)
        #expect(try place.fanfare("devices", "import", "devices.csv").status == 0)
        try campaign(place, "weekly", "{cron: \"0 18 * * FRI\", zone: UTC}")
        let text = try place.folder.read("campaigns/weekly.yaml")
        try place.folder.write(text.replacing("new-episode", with: "\"\""), to: "campaigns/weekly.yaml")
        let failing = try place.fanfare("schedule", "weekly")
        let key = String(try #require(failing.output.firstMatch(of: /(\S+); will fail: no value for reason/)).1)
        let wrong = try place.fanfare("validate", "campaigns/weekly.yaml")
        #expect(wrong.status == 65 && wrong.output.contains("{{reason}} has no value"), "\(wrong.output)")

        let given = try place.fanfare(
            "plan", "weekly", "--occurrence", key, "--var", "reason=The Reef", "--save")
        #expect(given.status == 0 && given.errors.contains("the start \(key) sends these values"), "\(given.errors)")
        let filled = try place.fanfare("schedule", "weekly", "--count", "2")
        #expect(filled.output.contains("\(key); its own reason"), "\(filled.output)")
        #expect(filled.output.contains("; will fail: no value for reason"))
        let checked = try place.fanfare("validate", "campaigns/weekly.yaml")
        #expect(checked.status == 0 && checked.output.contains("has its values; the one after,"), "\(checked.output)")
        let shown = try place.fanfare("plan", "weekly", "--occurrence", key)
        #expect(shown.output.contains("The Reef"), "\(shown.output)")

        let removed = try place.fanfare("plan", "weekly", "--occurrence", key, "--remove-values")
        #expect(removed.errors.contains("removed the values of \(key)"), "\(removed.errors)")
        #expect(try place.fanfare("schedule", "weekly").output.contains("will fail"))
        #expect(try place.fanfare("plan", "weekly", "--remove-values").status == 64)
    }

    @Test func `a start in the past is named by the schedule, and an error of validate`() throws {
        let place = try Installation(devices: 1)
        try campaign(place, "over", "{at: 2020-01-01T00:00, zone: Europe/Berlin}")
        let shown = try place.fanfare("schedule", "over")
        #expect(shown.status == 0, "\(shown.errors)")
        #expect(
            shown.output.contains("over: its only start, 2020-01-01 00:00 Europe/Berlin, is over"), "\(shown.output)")
        #expect(!shown.output.contains("give a campaign"))
        let checked = try place.fanfare("validate", "campaigns/over.yaml")
        #expect(checked.status == 65)
        #expect(checked.output.contains("over.yaml:7:1: error: schedule: its only start"), "\(checked.output)")
    }

    @Test func `a folder of campaigns that is gone is not called an empty schedule or an unknown campaign`() throws {
        let place = try Installation(devices: 1)
        let empty = try place.fanfare("schedule", "refresh-episodes")
        #expect(empty.status == 0 && empty.output.contains("no campaign has a schedule"), "\(empty)")
        try FileManager.default.removeItem(atPath: "\(place.folder.path)/campaigns")
        try place.importDevices()
        for words in [["schedule"], ["plan", "new-podcast"] + Installation.words] {
            let gone = try place.fanfare(words)
            #expect(gone.status == 78, "\(words): \(gone)")
            #expect(gone.errors.contains("campaigns, cannot be read: No such file or directory"), "\(gone.errors)")
        }
    }

    @Test func `a value that is no UTF-8 is refused`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let command =
            "exec \"$0\" plan new-podcast --var title=\"$(printf '\\377')\" --var link_url=https://example.com"
        let refused = try Program.run(
            ["-c", command, Program.url.path], in: place.folder, program: URL(fileURLWithPath: "/bin/sh"))
        #expect(refused.status == 64, "\(refused.output)\(refused.errors)")
        #expect(refused.errors.contains("--var title: the argument 4 is not UTF-8 text"), "\(refused.errors)")
        // Somebody may mean the sign itself.
        let meant = try place.fanfare(
            "plan", "new-podcast", "--var", "title=\u{FFFD} news", "--var", "link_url=https://example.com")
        #expect(!meant.errors.contains("not UTF-8"), "\(meant.errors)")
    }

    @Test func `shows what is right and names what is wrong`() throws {
        let place = try Installation(devices: 1)
        try campaign(place, "morning", "{cron: \"0 9 * * *\", zone: Europe/Berlin}")
        try campaign(place, "broken", "{cron: \"0 25 * * *\", zone: Europe/Berlin}")
        let result = try place.fanfare("schedule")
        #expect(result.status == 65)
        #expect(result.output.contains("morning"))
        #expect(result.errors.contains("broken.yaml:7:18: error: cron"))
    }

    @Test func `values from a file are taken, and overridden on the command line`() throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        try place.folder.write("title: From the file\nlink_url: https://example.com/f\n", to: "values.yaml")
        let plan = try place.fanfare(
            "plan", "new-podcast", "--vars-file", "values.yaml", "--var", "title=From the line")
        #expect(plan.output.contains("From the line"))
        #expect(!plan.output.contains("From the file"))
        #expect(plan.output.contains("https://example.com/f"))
        try place.folder.write("title: [a]\ntitle: b\nlink_url:\n", to: "values.yaml")
        let broken = try place.fanfare("plan", "new-podcast", "--vars-file", "values.yaml")
        #expect(broken.status == 65)
        #expect(broken.errors.contains("values.yaml:1:8: error: \"title\": expected a text, found a list"))
    }
}
